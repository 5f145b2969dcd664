package import Base
/// Detects media that arrives more slowly than it plays, for example over a narrow uplink: the delay from timeline to
/// arrival grows without end. A stall that is caught up does not count, because only the sample with the least delay of
/// each time slice is used. Neither does a publisher's clock that is slightly slow.
package struct ArrivalMeter {
  /// Length of a slice in nanoseconds.
  static let slice: Int64 = 500_000_000
  /// Slices between the two that are compared.
  static let distance = 6
  /// Growth of the delay over the distance (3 s), in nanoseconds, of media that falls behind: below 80 % of real time.
  static let tooMuch: Int64 = 600_000_000
  /// Growth below which media keeps up again: 95 % of real time.
  static let fine: Int64 = 150_000_000

  /// Least delays of complete slices, oldest first.
  private var delays: [MonotonicTime] = []
  private var direct = LeastDelay(slice: slice)
  private var fallsBehind = false

  package init() {}

  /// Takes a sample's place on the timeline, in nanoseconds, and its arrival. Returns whether media falls behind, if
  /// that has changed.
  package mutating func saw(_ time: Int64, now: MonotonicTime) -> Bool? {
    guard let delay = direct.saw(time, now: now) else { return nil }
    delays.append(delay)
    guard delays.count > Self.distance else { return nil }
    let growth = delay &- delays.removeFirst()
    let before = fallsBehind
    fallsBehind = growth >= (before ? Self.fine : Self.tooMuch)
    return fallsBehind == before ? nil : fallsBehind
  }
}
