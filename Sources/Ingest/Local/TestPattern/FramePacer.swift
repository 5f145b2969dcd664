internal import Base
internal import FMP4

/// Decides which frame of a constant rate comes next, and when: each at its time on a monotonic clock, without drift.
/// On a slow machine it drops frames evenly, so that nothing queues up.
struct FramePacer: Sendable {
  /// What to do now.
  enum Step: Sendable, Hashable {
    /// Nothing for this many nanoseconds.
    case wait(nanoseconds: Int64)
    /// Make this frame.
    case frame(Int64)
    /// The process was suspended for long: continue with this frame, after a break of the timeline.
    case frameAfterBreak(Int64)
  }

  /// For each such span of lateness, one more frame is dropped after each frame. The delay settles where the machine
  /// keeps up, and a short delay costs nothing.
  static let nanosecondsLatePerDrop: Int64 = 400_000_000
  /// A longer delay is a break (process stopped, machine asleep), not slowness.
  static let longestDelay: Int64 = 5_000_000_000

  private let start: MonotonicTime
  private let rate: TestSourceSettings.FrameRate
  private var next: Int64 = 0
  /// Number of dropped frames.
  private(set) var dropped: Int64 = 0

  /// - Parameter start: time of frame 0.
  init(start: MonotonicTime, rate: TestSourceSettings.FrameRate) {
    self.start = start
    self.rate = rate
  }

  mutating func step(now: MonotonicTime) -> Step {
    let lateness = now &- due(next)
    if lateness < 0 { return .wait(nanoseconds: -lateness) }
    if lateness > Self.longestDelay {
      let elapsed = MediaTime(nanoseconds: now &- start).rescaled(to: rate.timescale)
      let frame = max(next, elapsed / Int64(rate.frameDuration))
      take(frame)
      return .frameAfterBreak(frame)
    }
    let frame = next + lateness / Self.nanosecondsLatePerDrop
    take(frame)
    return .frame(frame)
  }

  private mutating func take(_ frame: Int64) {
    dropped += frame - next
    next = frame + 1
  }

  private func due(_ frame: Int64) -> MonotonicTime {
    start &+ MediaTime(ticks: frame &* Int64(rate.frameDuration), timescale: rate.timescale).nanoseconds
  }
}
