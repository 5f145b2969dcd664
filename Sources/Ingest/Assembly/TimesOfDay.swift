internal import FMP4

/// Which time of day a publication's media had: told when it begins, and anew where that turns out to be wrong.
struct TimesOfDay {
  /// Why it is told anew.
  enum Reason: Equatable {
    /// The first media came later than what followed, by so many milliseconds.
    case lateBeginning(Int64)
    case slowClock, fastClock
  }

  private let wallOffset: Int64
  /// Before the beginning: the least of arrival minus the end of presentation, in nanoseconds. It is the most direct way that a
  /// sample has taken so far, and nothing is older than it says then.
  private var leastDelay: Int64 = .max
  /// The nanoseconds of the timeline that are media time 0.
  private var origin: Int64 = 0
  /// Once the beginning is out.
  private var follower: ClockFollower?

  /// `wallOffset` as in `SteadyClock`: wall time minus monotonic time, in nanoseconds.
  init(wallOffset: Int64) { self.wallOffset = wallOffset }

  /// Before the beginning: with what came now, presentation reaches `end`, in nanoseconds on the timeline.
  mutating func gather(end: Int64, now: Int64) { leastDelay = min(leastDelay, now &- end) }

  /// What was gathered belongs to another timeline.
  mutating func forgetGathered() { leastDelay = .max }

  /// The beginning is out.
  mutating func begin(at origin: Int64, now: Int64) -> WallClockAnchor {
    self.origin = origin
    follower = ClockFollower(delay: leastDelay, now: now)
    return anchor(leastDelay)
  }

  /// With what came now, presentation reaches `end`. The time, where it has to be told anew.
  mutating func follow(_ end: Int64, now: Int64) -> (anchor: WallClockAnchor, reason: Reason)? {
    guard let told = follower?.told, let wasBeginning = follower?.isBeginning,
      let delay = follower?.saw(end, now: now)
    else { return nil }
    let drift: Reason = delay > told ? .slowClock : .fastClock
    return (anchor(delay), wasBeginning ? .lateBeginning((told &- delay) / 1_000_000) : drift)
  }

  /// The timeline breaks before what came now. Other times of day may hold behind it: a publisher that paused left a hole in
  /// time, and none in its media.
  mutating func breakTimeline(_ end: Int64, now: Int64) -> WallClockAnchor? {
    follower?.forget()
    let delay = now &- end
    guard let told = follower?.told, (delay &- told).magnitude >= ClockFollower.sudden.magnitude else { return nil }
    follower = ClockFollower(delay: delay, now: now)
    return anchor(delay)
  }

  /// Something has shown that the way is shorter than was thought.
  mutating func beginAgain(now: Int64) { follower?.beginAgain(now: now) }

  private func anchor(_ delay: Int64) -> WallClockAnchor {
    WallClockAnchor(mediaTime: .zero, wallNanoseconds: delay &+ origin &+ wallOffset)
  }
}
