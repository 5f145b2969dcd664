/// Which of the times that a driver gives its pictures are believed, whatever clock the driver says they are of: some count on
/// another one, and clocks inside cameras leap. One wrong time far ahead would leave every later picture behind it.
struct TimestampFilter: Sendable {
  /// Clocks are read one after the other.
  static let farthestAhead: Int64 = 5_000_000
  /// No camera takes longer for a picture.
  static let oldest: Int64 = 1_000_000_000

  /// When the last picture was looked at; nil at first.
  private var seen: Int64?
  /// For as long nobody looked, lately: pictures of that while have waited in the driver's memory.
  private var standstill: ClosedRange<Int64>?

  /// The time itself where it can be one of the monotonic clock; else nil, and the picture is of now.
  ///
  /// - Parameters:
  ///   - time: as the driver tells it, in nanoseconds.
  ///   - now: on the monotonic clock.
  mutating func believed(_ time: Int64, now: Int64) -> Int64? {
    if let seen, now &- seen > Self.oldest { standstill = seen...now }
    if let end = standstill?.upperBound, now &- end > Self.oldest { standstill = nil }
    seen = now
    let (age, hasOverflowed) = now.subtractingReportingOverflow(time)
    guard time > 0, !hasOverflowed, age >= -Self.farthestAhead else { return nil }
    return age <= Self.oldest || standstill?.contains(time) == true ? time : nil
  }
}
