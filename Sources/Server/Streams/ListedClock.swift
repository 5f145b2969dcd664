internal import Publishing
internal import FMP4

/// The clock by which an epoch's segments are dated. It follows that of the publication, but never contradicts what is listed.
///
/// Later dates leave a hole in the lists, which players pass. Earlier ones would lay media over media that are listed already:
/// players drop what they find twice. So the clock is set back in steps that a list allows, or not at all. The media of a publisher
/// whose clock is fast last longer than time does, so there is no other way: its dates step back with a discontinuity.
struct ListedClock: Sendable {
  /// Nanoseconds. Dates of a list may be off the lengths of its segments by 100 ms.
  static let step: Int64 = 80_000_000
  /// Nanoseconds by which it is set back in such steps, after a beginning that came late. It is also what manifests may be late by.
  static let soon: Int64 = 500_000_000
  /// What remains is set back no faster than a clock drifts (`ClockFollower`): by so much, and then not for so long.
  static let driftStep: Int64 = 40_000_000
  static let driftRest = MediaTime(milliseconds: 100_000)
  /// Nanoseconds. Less is no error.
  static let worthTelling: Int64 = 20_000_000

  /// Maps media times to the wall clock.
  private(set) var anchor: WallClockAnchor?
  /// The publication's clock, where that is another one.
  private var wanted: WallClockAnchor?
  /// By how many nanoseconds the clock was later than that before it stepped.
  private var late: Int64 = 0
  /// What `soon` still allows.
  private var left = soon
  /// The media time from which it may be set back again.
  private var settled: MediaTime?

  /// Uses a clock as it is: none of its dates is listed.
  mutating func set(_ clock: WallClockAnchor) {
    self = ListedClock(anchor: WallClockAnchor(mediaTime: clock.mediaTime, wallTime: clock.wallTime))
  }

  init() {}

  private init(anchor: WallClockAnchor) { self.anchor = anchor }

  /// Dates step with the next segment that players can begin with: a break comes before it.
  var steps: Bool { wanted?.beginsTimeline == true }

  /// Another publication begins. The clock before stays until it has told its own.
  mutating func startPublication() { (wanted, left, settled) = (nil, Self.soon, nil) }

  /// Takes a clock for the segments to come.
  mutating func follow(_ clock: WallClockAnchor) {
    guard let known = wanted ?? anchor else { return wanted = clock }
    let off = known.wallTime(at: clock.mediaTime) &- clock.wallTime
    guard off.magnitude >= Self.worthTelling.magnitude else { return }
    let begins = steps || clock.beginsTimeline
    if begins, !steps, let anchor {
      late = anchor.wallTime(at: clock.mediaTime) &- known.wallTime(at: clock.mediaTime)
    }
    wanted = clock
    wanted?.beginsTimeline = begins
  }

  /// The clock of a segment that follows a break. `end`: of what is listed. Returns it if it is a new one.
  mutating func breaks(at start: MediaTime, behind end: WallTime?) -> WallClockAnchor? {
    guard let clock = wanted ?? anchor else { return nil }
    (left, settled) = (Self.soon, nil)
    var over = end.map { $0 &- clock.wallTime(at: start) } ?? 0
    // What was late for another reason stays so.
    if clock.beginsTimeline { over = min(over, late) }
    // What is more was listed, and cannot be taken back: it is worked off as a drift is.
    if over >= Self.worthTelling { left = 0 }
    return use(clock, lateBy: over >= Self.worthTelling ? over : 0)
  }

  /// The clock of a segment that goes on. Returns it if it is a new one.
  mutating func goesOn(at start: MediaTime) -> WallClockAnchor? {
    guard let wanted, !steps, let anchor else { return nil }
    let back = anchor.wallTime(at: wanted.mediaTime) &- wanted.wallTime
    guard back > 0 else { return use(wanted, lateBy: 0) }
    var step = min(back, Self.step, left)
    left &-= step
    if step == 0 {
      if let settled, start < settled { return nil }
      step = min(back, Self.driftStep)
      settled = start + Self.driftRest
    }
    return use(wanted, lateBy: back &- step)
  }

  private mutating func use(_ clock: WallClockAnchor, lateBy late: Int64) -> WallClockAnchor? {
    wanted = late > 0 ? WallClockAnchor(mediaTime: clock.mediaTime, wallTime: clock.wallTime) : nil
    let used = WallClockAnchor(mediaTime: clock.mediaTime, wallTime: clock.wallTime &+ late)
    guard used != anchor else { return nil }
    anchor = used
    return used
  }
}
