package import FMP4

/// A wall clock that never steps: read from the system at the start, then continued by the monotonic clock. All wall
/// clock times of weir (`/time`, PROGRAM-DATE-TIME, availabilityStartTime, file names) come from one such clock. So a
/// step of the system's clock changes nothing in a running publication.
package struct SteadyClock: Sendable {
  /// The clocks at the start.
  package let reading: ClockReading
  /// The monotonic clock now.
  package let monotonic: @Sendable () -> MonotonicTime

  package init(_ reading: ClockReading, monotonic: @escaping @Sendable () -> MonotonicTime) {
    self.reading = reading
    self.monotonic = monotonic
  }

  /// The time of day now.
  package var wallTime: WallTime { reading.wallTime(at: monotonic()) }
  /// The same in whole seconds since 1970.
  package var wallSeconds: Int64 { wallTime.seconds }

  /// The system's clock, read now.
  package static func system() -> SteadyClock { SteadyClock(.now(), monotonic: MonotonicTime.now) }
}
