internal import Base

/// Filters the frame times of a driver by plausibility, whatever clock the driver states. Some drivers use another
/// clock, and clocks in cameras jump. One wrong time in the far future would make all later frames too early.
struct TimestampFilter: Sendable {
  /// Tolerance, because the clocks are read one after the other.
  static let farthestAhead: Int64 = 5_000_000
  /// Oldest plausible time: no camera takes longer per frame.
  static let oldest: Int64 = 1_000_000_000

  /// When the last frame was taken from the driver. Nil at first.
  private var seen: MonotonicTime?
  /// A recent period in which no frame was taken. Frames of that period waited in the driver's memory.
  private var standstill: ClosedRange<MonotonicTime>?

  /// A driver's time if it is plausible. Otherwise nil; the caller then uses the present time.
  mutating func believed(_ time: MonotonicTime, now: MonotonicTime) -> MonotonicTime? {
    if let seen, now &- seen > Self.oldest { standstill = seen...now }
    if let end = standstill?.upperBound, now &- end > Self.oldest { standstill = nil }
    seen = now
    let (age, hasOverflowed) = now.nanoseconds.subtractingReportingOverflow(time.nanoseconds)
    guard time > .zero, !hasOverflowed, age >= -Self.farthestAhead else { return nil }
    return age <= Self.oldest || standstill?.contains(time) == true ? time : nil
  }
}
