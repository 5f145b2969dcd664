package import FMP4
internal import Glibc

/// Both clocks, read at one instant. Nothing else leads from one clock to the other.
package struct ClockReading: Sendable {
  package let wall: WallTime
  package let monotonic: MonotonicTime

  package init(wall: WallTime, monotonic: MonotonicTime) {
    self.wall = wall
    self.monotonic = monotonic
  }

  /// The system's clocks, read now.
  package static func now() -> ClockReading {
    ClockReading(wall: WallTime(nanoseconds: timespec(CLOCK_REALTIME).nanoseconds), monotonic: .now())
  }

  package func wallTime(at time: MonotonicTime) -> WallTime { wall &+ (time &- monotonic) }
  package func monotonicTime(at time: WallTime) -> MonotonicTime { monotonic &+ (time &- wall) }
}
