/// Bounds of what `/metrics` tells and costs.
enum MetricsLimits {
  /// Streams that have series of their own, the first to come; the others are told together. With this many, all
  /// recorded and with a ladder, there are fewer than 2,000 series, which a Prometheus server takes without a thought.
  static let streams = 50
  /// An answer is given again to those who ask within so many nanoseconds, so that asking without pause costs a few
  /// percent of one processor at most.
  static let shortestInterval: Int64 = 200_000_000
}
