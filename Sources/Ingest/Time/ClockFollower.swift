/// Follows a publisher's clock that runs a little fast or slow beside this machine's, so that the times of day that are
/// told of its media stay true: at 100 ppm, what was right at first is 8.6 s wrong a day later. Media times stay as they
/// were published; only the wall-clock time of media time 0 moves, in small steps and seldom.
///
/// A drift shows in the least delay of a while, since a network only ever adds to it. What adds for longer, a queue that
/// does not get empty, is followed no faster than a clock could drift.
///
/// At the beginning it is otherwise: encoders with look-ahead, and those that connect slowly, send their first media in a
/// burst, later than all that follows. Once the delay falls no further the time is told anew, in one step. So it is whenever the
/// least delay of a slice is much lower than what is told: what was told was a queue that has drained since.
struct ClockFollower: Sendable {
  /// Nanoseconds of which only the most direct sample counts.
  static let slice: Int64 = 30_000_000_000
  /// Slices that are looked at together.
  static let memory = 4
  /// Nanoseconds by which the time moves.
  static let step: Int64 = 40_000_000
  /// Nanoseconds between two moves: 400 ppm are followed.
  static let rest: Int64 = 100_000_000_000
  /// Nanoseconds without a lower delay after which the beginning is over, and the longest that it is.
  static let quiet: Int64 = 500_000_000
  static let longestBeginning: Int64 = 4_000_000_000
  /// Nanoseconds by which a delay is lower, and by which the time of the beginning must be wrong to be told anew.
  static let lower: Int64 = 5_000_000
  static let worthTelling: Int64 = 1_000_000
  /// Nanoseconds by which no clock drifts within a few slices.
  static let sudden: Int64 = 100_000_000

  /// Arrival minus place on the timeline, in nanoseconds, that is told.
  private(set) var told: Int64
  private var movedAt: Int64
  /// The least delays of complete slices, oldest first.
  private var delays: [Int64] = []
  private var direct = LeastDelay(slice: slice)
  private var beginning: Beginning?

  /// While the beginning lasts: since when, the least delay, and how low it fell when it last did.
  private struct Beginning: Sendable {
    let began: Int64
    var least: Int64
    var fell: (to: Int64, at: Int64)

    init(_ delay: Int64, now: Int64) {
      began = now
      least = delay
      fell = (delay, now)
    }

    /// Whether it lasts.
    mutating func saw(_ delay: Int64, now: Int64) -> Bool {
      least = min(least, delay)
      if fell.to &- delay >= ClockFollower.lower { fell = (delay, now) }
      return now &- fell.at < ClockFollower.quiet && now &- began < ClockFollower.longestBeginning
    }
  }

  /// `delay` is told at first, from `now` on.
  init(delay: Int64, now: Int64) {
    told = delay
    movedAt = now
    beginning = Beginning(delay, now: now)
  }

  /// Something has shown that the delay is lower than was thought.
  mutating func beginAgain(now: Int64) { beginning = Beginning(told, now: now) }

  /// What is told may still be the delay of a first burst.
  var isBeginning: Bool { beginning != nil }

  /// What was seen does not hold for what comes.
  mutating func forget() {
    delays = []
    direct = LeastDelay(slice: Self.slice)
  }

  /// Takes a sample's place on the timeline and its arrival, both in nanoseconds. Returns what is to be told
  /// from now on, if that has changed.
  mutating func saw(_ time: Int64, now: Int64) -> Int64? {
    if beginning != nil { return begin(now &- time, now) }
    guard let delay = direct.saw(time, now: now) else { return nil }
    if told &- delay >= Self.sudden {
      delays = []
      return tell(delay, now)
    }
    delays.append(delay)
    if delays.count > Self.memory { delays.removeFirst() }
    guard delays.count == Self.memory, let least = delays.min(), now &- movedAt >= Self.rest else { return nil }
    guard (least &- told).magnitude >= Self.step.magnitude else { return nil }
    return tell(told &+ (least > told ? Self.step : -Self.step), now)
  }

  private mutating func begin(_ delay: Int64, _ now: Int64) -> Int64? {
    guard beginning?.saw(delay, now: now) == false, let least = beginning?.least else { return nil }
    beginning = nil
    return told &- least >= Self.worthTelling ? tell(least, now) : nil
  }

  private mutating func tell(_ delay: Int64, _ now: Int64) -> Int64 {
    told = delay
    movedAt = now
    return delay
  }
}
