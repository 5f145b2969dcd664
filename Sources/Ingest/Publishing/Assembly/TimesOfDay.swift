internal import Base
internal import FMP4

/// Time of day of a publication's media. Set at the start, and again if it proves wrong.
struct TimesOfDay {
  /// Why it is set again.
  enum Reason: Equatable {
    /// The first media came later than the following media, by this many milliseconds.
    case lateBeginning(Int64)
    case slowClock, fastClock
  }

  private let reading: ClockReading
  /// Before the start: smallest difference of arrival and end of presentation. It belongs to the sample with the least
  /// delay so far, and gives an upper bound of the media's age.
  private var leastDelay = MonotonicTime.max
  /// Time of media time 0 on the timeline, in nanoseconds.
  private var origin: Int64 = 0
  /// How long before it arrived media was made, by the publisher's own clock, in nanoseconds. Nil if it states none that fits.
  private var lead: Int64?
  /// Longest such time. A clock that says more is wrong.
  static let longestLead: Int64 = 500_000_000
  /// How far media may be ahead of its arrival by that clock. Arrival is counted from the end of a frame, and the clock from
  /// its beginning: a sender that sends a frame as it is made is ahead by a frame, of 40 ms at 25 frames a second. Clocks that
  /// are set by a network are a few milliseconds apart. A clock that says more is wrong: media does not come from the future.
  static let mostAhead: Int64 = 50_000_000
  /// Set from the start on.
  private var follower: ClockFollower?
  /// The same, until a burst is over or the beginning has none.
  private var burst: FirstBurst?
  /// By how many thousandths the publisher's clock is off (`ClockDrift.error`).
  var clockError: Int? { follower?.error }

  init(reading: ClockReading) { self.reading = reading }

  /// Before the start: records that presentation reaches `end` with the media of now, in nanoseconds on the timeline.
  mutating func gather(end: Int64, now: MonotonicTime) { leastDelay = min(leastDelay, now &- end) }

  /// Drops the records, because they belong to another timeline.
  mutating func forgetGathered() { leastDelay = .max }

  /// Sets the time at the start of the publication.
  mutating func begin(at origin: Int64, now: MonotonicTime) -> WallClockAnchor {
    self.origin = origin
    follower = ClockFollower(delay: leastDelay, now: now)
    burst = FirstBurst(delay: leastDelay, now: now)
    return anchor(leastDelay)
  }

  /// Records the same as `follow`, for a first burst. Returns a provisional time when one is found, and the time to use when it
  /// is over.
  mutating func watchBurst(_ end: Int64, now: MonotonicTime) -> WallClockAnchor? {
    let change = burst?.saw(now &- end, now: now)
    return burst.flatMap { clock(of: change, $0.least) }
  }

  /// Time has passed without media. Returns the time to use if a burst is over.
  mutating func tick(now: MonotonicTime) -> WallClockAnchor? {
    let change = burst?.tick(now: now)
    return burst.flatMap { clock(of: change, $0.least) }
  }

  /// What comes next belongs to no burst. Returns the time to use if one went on.
  mutating func endBurst() -> WallClockAnchor? {
    guard let burst, burst.isOn else {
      burst = nil
      return nil
    }
    return clock(of: .ends, burst.least)
  }

  private mutating func clock(of change: FirstBurst.Change?, _ delay: MonotonicTime) -> WallClockAnchor? {
    guard let change else {
      if follower?.isBeginning == false { burst = nil }
      return nil
    }
    var anchor = anchor(delay)
    anchor.isProvisional = change == .begins
    if change == .ends { burst = nil }
    return anchor
  }

  /// Records that presentation reaches `end` with the media of now. Returns the time if it must be set again.
  mutating func follow(_ end: Int64, now: MonotonicTime) -> (anchor: WallClockAnchor, reason: Reason)? {
    guard let told = follower?.told, let wasBeginning = follower?.isBeginning,
      let delay = follower?.saw(end, now: now)
    else { return nil }
    let sooner = told &- delay
    if let known = lead, wasBeginning || sooner >= ClockFollower.sudden.magnitude {
      // Media comes sooner than before. When it was made is known all the same.
      let left = known &- sooner
      let fits = left >= -Self.mostAhead
      lead = fits ? left : 0
      if !fits { follower?.isStated = false }
      if fits { return nil }
    }
    let drift: Reason = delay > told ? .slowClock : .fastClock
    var anchor = anchor(delay)
    anchor.beginsTimeline = !wasBeginning && follower?.isOff == true
    return (anchor, wasBeginning ? .lateBeginning((told &- delay) / 1_000_000) : drift)
  }

  /// Handles a break of the timeline before the media of now. Later media may have another time of day: a publisher
  /// that paused has a gap in time, but none in its media.
  mutating func breakTimeline(_ end: Int64, now: MonotonicTime) -> WallClockAnchor? {
    follower?.forget()
    let delay = now &- end
    guard let former = follower, (delay &- former.told).magnitude >= ClockFollower.sudden.magnitude else { return nil }
    follower = ClockFollower(delay: delay, now: now)
    follower?.isStated = former.isStated
    return anchor(delay)
  }

  /// Takes the publisher's statement that place 0 on the timeline was at `time`. The first one that fits arrival is used, once
  /// arrival is known well enough. Returns the time that is then set.
  mutating func state(_ time: WallTime) -> (anchor: WallClockAnchor, lead: Int64)? {
    guard lead == nil, let follower, !follower.isBeginning else { return nil }
    let stated = follower.told &- reading.monotonicTime(at: time)
    guard (-Self.mostAhead...Self.longestLead).contains(stated) else { return nil }
    lead = stated
    self.follower?.isStated = true
    return (anchor(follower.told), stated)
  }

  /// Measures the delay again, because it has proved to be smaller.
  mutating func beginAgain(now: MonotonicTime) { follower?.beginAgain(now: now) }

  private func anchor(_ delay: MonotonicTime) -> WallClockAnchor {
    WallClockAnchor(mediaTime: .zero, wallTime: reading.wallTime(at: delay &- (lead ?? 0) &+ origin))
  }
}
