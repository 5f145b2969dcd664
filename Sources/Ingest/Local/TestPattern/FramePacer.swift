internal import FMP4

/// Decides which frame of a constant rate comes next, and when: each at its time on a monotonic clock, without drift.
/// On a slow machine it drops frames evenly, so that nothing queues up.
struct FramePacer: Sendable {
  /// What to do now.
  enum Step: Sendable, Hashable {
    /// Nothing for this many nanoseconds.
    case wait(nanoseconds: Int64)
    /// Make this frame.
    case picture(Int64)
    /// The process was suspended for long: continue with this frame, after a break of the timeline.
    case pictureAfterBreak(Int64)
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
      let picture = max(next, elapsed / Int64(rate.frameDuration))
      take(picture)
      return .pictureAfterBreak(picture)
    }
    let picture = next + lateness / Self.nanosecondsLatePerDrop
    take(picture)
    return .picture(picture)
  }

  private mutating func take(_ picture: Int64) {
    dropped += picture - next
    next = picture + 1
  }

  private func due(_ picture: Int64) -> MonotonicTime {
    start &+ MediaTime(ticks: picture &* Int64(rate.frameDuration), timescale: rate.timescale).nanoseconds
  }
}
