package import Base
/// Follows a publisher's clock that is slightly fast or slow compared with this machine's. The times of day of its
/// media then stay right. At 100 ppm, a time that is right at first is 8.6 s wrong a day later. Media times stay as
/// published. Only the wall clock of media time 0 moves, rarely and in small steps.
///
/// A drift shows in the least delay over some time, because a network only adds delay. A longer addition, such as a
/// queue that stays filled, is followed no faster than a clock could drift.
///
/// The start is different. Encoders with look-ahead, and those that connect slowly, send their first media in a burst,
/// later than the rest. Once the delay falls no further, the time is set again in one step. The same happens whenever
/// the least delay of a slice is much lower than the used one: a queue has drained.
///
/// A clock that is off by more than small steps can follow (`ClockDrift`) has steps of its own: the delay is set again when its error
/// is `longestError`.
package struct ClockFollower: Sendable {
  /// Slice in nanoseconds of which only the sample with the least delay counts.
  static let slice: Int64 = 30_000_000_000
  /// Slices that are compared.
  static let memory = 4
  /// Step of the time, in nanoseconds.
  static let step: Int64 = 40_000_000
  /// Nanoseconds between two steps: up to 400 ppm are followed.
  static let rest: Int64 = 100_000_000_000
  /// Nanoseconds without a lower delay that end the start phase, and its longest duration.
  static let quiet: Int64 = 500_000_000
  static let longestBeginning: Int64 = 4_000_000_000
  /// In nanoseconds: least decrease of the delay that counts in the start phase, and least error that sets the time
  /// again.
  static let lower: Int64 = 5_000_000
  static let worthTelling: Int64 = 1_000_000
  /// Nanoseconds that no clock drifts within a few slices.
  package static let sudden: Int64 = 100_000_000
  /// Nanoseconds by which times of day may be wrong while a clock is off. Less than any segment.
  static let longestError: UInt64 = 500_000_000

  /// Used delay: arrival minus place on the timeline, which is the arrival of time 0.
  package private(set) var told: MonotonicTime
  private var movedAt: MonotonicTime
  /// Least delays of complete slices, oldest first.
  private var delays: [MonotonicTime] = []
  private var direct = LeastDelay(slice: slice)
  private var beginning: Beginning?
  private var (quick, slow) = (ClockDrift.quick, ClockDrift.slow)

  /// By how many thousandths the publisher's clock is off, from ten on. Positive: it is fast. Nil: it is not.
  package var error: Int? { isStated ? nil : quick.error ?? slow.error }
  /// The clock is off by more than small steps can follow.
  package var isOff: Bool { !isStated && (quick.rate != nil || slow.rate != nil) }
  /// The publisher states times of day that hold: however late its media comes, its clock is right.
  package var isStated = false

  /// The start phase: its beginning, the least delay, and value and time of the last decrease.
  private struct Beginning: Sendable {
    let began: MonotonicTime
    var least: MonotonicTime
    var fell: (to: MonotonicTime, at: MonotonicTime)

    init(_ delay: MonotonicTime, now: MonotonicTime) {
      began = now
      least = delay
      fell = (delay, now)
    }

    /// Whether the start phase continues.
    mutating func saw(_ delay: MonotonicTime, now: MonotonicTime) -> Bool {
      least = min(least, delay)
      if fell.to &- delay >= ClockFollower.lower { fell = (delay, now) }
      return now &- fell.at < ClockFollower.quiet && now &- began < ClockFollower.longestBeginning
    }
  }

  /// Uses `delay` from `now` on.
  package init(delay: MonotonicTime, now: MonotonicTime) {
    told = delay
    movedAt = now
    beginning = Beginning(delay, now: now)
  }

  /// Begins the start phase again, because the delay has proved to be lower.
  package mutating func beginAgain(now: MonotonicTime) { beginning = Beginning(told, now: now) }

  /// Whether the used delay may still be that of a first burst.
  package var isBeginning: Bool { beginning != nil }

  /// Drops the measurements, because they no longer apply.
  package mutating func forget() {
    delays = []
    direct = LeastDelay(slice: Self.slice)
    beginDrift()
  }

  private mutating func beginDrift() {
    quick.begin(from: told)
    slow.begin(from: told)
  }

  /// Takes a sample's place on the timeline, in nanoseconds, and its arrival. Returns the new delay to use, if it has
  /// changed.
  package mutating func saw(_ time: Int64, now: MonotonicTime) -> MonotonicTime? {
    if beginning != nil { return begin(now &- time, now) }
    if let steady = steady(time, now), (steady &- told).magnitude >= Self.longestError { return tell(steady, now) }
    guard let delay = direct.saw(time, now: now) else { return nil }
    if isOff {
      delays = []
      return nil
    }
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

  /// The newest delay where the clock is off.
  private mutating func steady(_ time: Int64, _ now: MonotonicTime) -> MonotonicTime? {
    if isStated { return nil }
    let (soon, late) = (quick.saw(time, now: now), slow.saw(time, now: now))
    // The least delay of a long slice is an old one where the clock is far off.
    return soon ?? (quick.rate == nil ? late : nil)
  }

  private mutating func begin(_ delay: MonotonicTime, _ now: MonotonicTime) -> MonotonicTime? {
    guard beginning?.saw(delay, now: now) == false, let least = beginning?.least else { return nil }
    beginning = nil
    defer { beginDrift() }
    return told &- least >= Self.worthTelling ? tell(least, now) : nil
  }

  private mutating func tell(_ delay: MonotonicTime, _ now: MonotonicTime) -> MonotonicTime {
    told = delay
    movedAt = now
    return delay
  }
}
