internal import Glibc

/// A wall clock that never steps: read from the system at the start, then continued by the monotonic clock. All wall
/// clock times of weir (`/time`, PROGRAM-DATE-TIME, availabilityStartTime, file names) come from one such clock. So a
/// step of the system's clock changes nothing in a running publication.
package struct SteadyClock: Sendable {
  /// Nanoseconds of the monotonic clock. Its origin is arbitrary.
  package let monotonicNanoseconds: @Sendable () -> Int64
  /// Wall clock minus monotonic clock, in nanoseconds.
  package let wallOffset: Int64

  package init(wallOffset: Int64, monotonicNanoseconds: @escaping @Sendable () -> Int64) {
    self.wallOffset = wallOffset
    self.monotonicNanoseconds = monotonicNanoseconds
  }

  /// Nanoseconds since 1970-01-01T00:00:00Z.
  package var wallNanoseconds: Int64 { monotonicNanoseconds() &+ wallOffset }

  /// The system's clock, read now.
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
