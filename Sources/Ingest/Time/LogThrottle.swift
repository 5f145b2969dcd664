/// Keeps the log short where a publisher can cause a line with each of its key frames: the first few are told, then no
/// more until a while has passed. A value.
struct LogThrottle: Sendable {
  /// How many are told in each such span of nanoseconds.
  static let burst = 5
  static let span: Int64 = 10_000_000_000

  private var start: Int64?
  private var told = 0
  private var untold = 0

  /// Nil where this one is not told; otherwise what is to be said of those that were not, maybe nothing.
  ///
  /// - Parameter now: monotonic nanoseconds.
  mutating func tells(now: Int64) -> String? {
    if start.map({ now &- $0 >= Self.span }) ?? true { (start, told) = (now, 0) }
    guard told < Self.burst else {
      untold &+= 1
      return nil
    }
    told += 1
    defer { untold = 0 }
    return untold > 0 ? " (\(untold) changes before it were not told)" : ""
  }
}
