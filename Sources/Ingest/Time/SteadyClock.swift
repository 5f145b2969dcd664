internal import Glibc

/// Wall time that never steps: read once from the system at start, carried on by the monotonic clock. All that
/// weir tells about wall time (`/time`, PROGRAM-DATE-TIME, availabilityStartTime, file names) comes from one such
/// clock, so that a step of the system's clock changes nothing in a running publication.
package struct SteadyClock: Sendable {
  /// Nanoseconds on a clock that never goes back; the origin means nothing.
  package let monotonicNanoseconds: @Sendable () -> Int64
  /// Nanoseconds from the monotonic clock's origin to 1970-01-01T00:00:00Z, negated: wall = monotonic + this.
  package let wallOffset: Int64

  package init(wallOffset: Int64, monotonicNanoseconds: @escaping @Sendable () -> Int64) {
    self.wallOffset = wallOffset
    self.monotonicNanoseconds = monotonicNanoseconds
  }

  /// Nanoseconds since 1970-01-01T00:00:00Z.
  package var wallNanoseconds: Int64 { monotonicNanoseconds() &+ wallOffset }

  /// The system's clock, anchored now.
  package static func system() -> SteadyClock {
    let wall = read(CLOCK_REALTIME)
    let monotonic = read(CLOCK_MONOTONIC)
    return SteadyClock(wallOffset: wall &- monotonic) { read(CLOCK_MONOTONIC) }
  }

  private static func read(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }
}
