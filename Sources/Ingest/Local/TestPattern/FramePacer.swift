internal import FMP4

/// Decides which picture of an even rhythm comes next, and when: each at its time on a monotonic clock, without
/// drift. Where the machine is too slow it leaves pictures out, evenly, so that nothing ever queues up.
struct FramePacer: Sendable {
  /// What to do now.
  enum Step: Sendable, Hashable {
    /// Nothing yet, for so many nanoseconds.
    case wait(nanoseconds: Int64)
    /// Make this picture.
    case picture(Int64)
    /// The process stood still for long: go on with this picture, after a break in the timeline.
    case pictureAfterBreak(Int64)
  }

  /// For each such span that the pictures are late, one more is left out after each one: the delay settles where
  /// the machine keeps up, and a short hiccup costs nothing.
  static let nanosecondsLatePerDrop: Int64 = 400_000_000
  /// A delay beyond this is a break (the process was stopped, the machine slept), not slowness.
  static let longestDelay: Int64 = 5_000_000_000

  private let start: Int64
  private let rate: TestSourceSettings.FrameRate
  private var next: Int64 = 0
  /// Pictures left out so far.
  private(set) var dropped: Int64 = 0

  /// - Parameter start: when picture 0 is due, in nanoseconds of the clock that `step` is asked with.
  init(start: Int64, rate: TestSourceSettings.FrameRate) {
    self.start = start
    self.rate = rate
  }

  mutating func step(now: Int64) -> Step {
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

  private func due(_ picture: Int64) -> Int64 {
    start &+ MediaTime(ticks: picture &* Int64(rate.frameDuration), timescale: rate.timescale).nanoseconds
  }
}
