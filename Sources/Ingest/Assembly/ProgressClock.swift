internal import FMP4

/// How far a publication's media has come by the clock, also while none arrives. It runs on from the newest sample, so
/// that a publisher whose clock is slower than ours does not fall behind it over the hours.
struct ProgressClock {
  /// Nanoseconds without media before its progress is told, and between two tellings.
  static let interval: Int64 = 200_000_000

  /// The newest sample: nanoseconds on the timeline, and of its arrival.
  private var newest: (time: Int64, arrival: Int64)?
  private var told: Int64 = .min

  mutating func saw(_ time: Int64, now: Int64) {
    if let newest, time < newest.time { return }
    newest = (time, now)
  }

  /// When `tell` has something to say next, in nanoseconds; nil before the first sample.
  func deadline(after now: Int64) -> Int64? {
    guard let newest else { return nil }
    return max(max(newest.arrival, told) &+ Self.interval, now &+ 1)
  }

  /// The time on the timeline that media has reached at least, in nanoseconds; nil when it is too early to tell.
  mutating func tell(now: Int64) -> Int64? {
    guard let newest, now &- max(newest.arrival, told) >= Self.interval else { return nil }
    told = now
    return newest.time &+ now &- newest.arrival
  }
}
