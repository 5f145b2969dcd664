package import Glibc

/// A time on the monotonic clock, in nanoseconds. Its origin is arbitrary; `ClockReading` knows the time of day.
///
/// Differences are plain nanoseconds. Sums and differences wrap at 2⁶³ and never trap.
public struct MonotonicTime: Hashable, Sendable, Comparable {
  public var nanoseconds: Int64

  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  public static let zero = MonotonicTime(nanoseconds: 0)
  public static let min = MonotonicTime(nanoseconds: .min)
  public static let max = MonotonicTime(nanoseconds: .max)

  /// The system's clock, read now.
  public static func now() -> MonotonicTime { MonotonicTime(nanoseconds: timespec(CLOCK_MONOTONIC).nanoseconds) }

  public static func < (a: MonotonicTime, b: MonotonicTime) -> Bool { a.nanoseconds < b.nanoseconds }
  public static func &- (a: MonotonicTime, b: MonotonicTime) -> Int64 { a.nanoseconds &- b.nanoseconds }

  public static func &+ (time: MonotonicTime, nanoseconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: time.nanoseconds &+ nanoseconds)
  }

  public static func &- (time: MonotonicTime, nanoseconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: time.nanoseconds &- nanoseconds)
  }
}

extension timespec {
  /// A clock of the system, read now.
  init(_ clock: clockid_t) {
    self.init()
    clock_gettime(clock, &self)
  }

  package var nanoseconds: Int64 { Int64(tv_sec) &* 1_000_000_000 &+ Int64(tv_nsec) }
}
