/// Follows a publisher's clock that runs a little fast or slow beside this machine's, so that the times of day that are
/// told of its media stay true: at 100 ppm, what was right at first is 8.6 s wrong a day later. Media times stay as they
/// were published; only the wall-clock time of media time 0 moves, in small steps and seldom.
///
/// A drift shows in the least delay of a while, since a network only ever adds to it. What adds for longer, a queue that
/// does not get empty, is followed no faster than a clock could drift.
struct ClockFollower: Sendable {
  /// Nanoseconds of which only the most direct sample counts.
  static let slice: Int64 = 30_000_000_000
  /// Slices that are looked at together.
  static let memory = 4
  /// Nanoseconds by which the time moves.
  static let step: Int64 = 40_000_000
  /// Nanoseconds between two moves: 400 ppm are followed.
  static let rest: Int64 = 100_000_000_000

  /// Arrival minus place on the timeline, in nanoseconds, that is told.
  private(set) var told: Int64
  private var movedAt: Int64
  /// The least delays of complete slices, oldest first.
  private var delays: [Int64] = []
  private var direct = LeastDelay(slice: slice)

  /// `delay` is told at first, from `now` on.
  init(delay: Int64, now: Int64) {
    told = delay
    movedAt = now
  }

  /// What was seen does not hold for what comes.
  mutating func forget() {
    delays = []
    direct = LeastDelay(slice: Self.slice)
  }

  /// Takes a sample's place on the timeline, in milliseconds, and its arrival in nanoseconds. Returns what is to be told
  /// from now on, if that has changed.
  mutating func saw(_ time: Int64, now: Int64) -> Int64? {
    guard let delay = direct.saw(time, now: now) else { return nil }
    delays.append(delay)
    if delays.count > Self.memory { delays.removeFirst() }
    guard delays.count == Self.memory, let least = delays.min(), now &- movedAt >= Self.rest else { return nil }
    guard (least &- told).magnitude >= Self.step.magnitude else { return nil }
    told &+= least > told ? Self.step : -Self.step
    movedAt = now
    return told
  }
}
