internal import Base

/// Progress of a publication's media by the clock, also while no media arrives. It counts on from the newest sample. So
/// a publisher with a slightly slow clock does not fall behind it over hours.
struct ProgressClock {
  /// Nanoseconds without media before the progress is reported, and between two reports.
  static let interval: Int64 = 200_000_000

  /// The newest sample: nanoseconds on the timeline, and arrival time.
  private var newest: (time: Int64, arrival: MonotonicTime)?
  private var told = MonotonicTime.min

  mutating func saw(_ time: Int64, now: MonotonicTime) {
    if let newest, time < newest.time { return }
    newest = (time, now)
  }

  /// Time of the next report. Nil before the first sample.
  func deadline(after now: MonotonicTime) -> MonotonicTime? {
    guard let newest else { return nil }
    return max(max(newest.arrival, told) &+ Self.interval, now &+ 1)
  }

  /// Time that the media has reached at least, in nanoseconds on the timeline. Nil if it is too early for a report.
  mutating func tell(now: MonotonicTime) -> Int64? {
    guard let newest, now &- max(newest.arrival, told) >= Self.interval else { return nil }
    told = now
    return newest.time &+ (now &- newest.arrival)
  }
}
