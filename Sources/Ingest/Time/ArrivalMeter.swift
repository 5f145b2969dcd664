/// Tells whether media arrives more slowly than it plays, as it does over an uplink that is too narrow: the time from a
/// sample's place on the timeline to its arrival grows without end. A stall that is made up for is none, since of each
/// slice of time only the sample that came most directly counts; and neither is a publisher's clock that is a little
/// slow.
struct ArrivalMeter {
  /// Nanoseconds that samples are taken together for.
  static let slice: Int64 = 500_000_000
  /// Slices between the two that are compared.
  static let distance = 6
  /// Nanoseconds by which the delay grows over the distance (3 s) of media that falls behind: below 80 % of real time.
  static let tooMuch: Int64 = 600_000_000
  /// And of media that keeps up again: 95 %.
  static let fine: Int64 = 150_000_000

  /// The least delays of complete slices, oldest first.
  private var delays: [Int64] = []
  private var direct = LeastDelay(slice: slice)
  private var fallsBehind = false

  /// Takes a sample's place on the timeline and its arrival, both in nanoseconds. Returns whether media
  /// falls behind, if that has changed.
  mutating func saw(_ time: Int64, now: Int64) -> Bool? {
    guard let delay = direct.saw(time, now: now) else { return nil }
    delays.append(delay)
    guard delays.count > Self.distance else { return nil }
    let growth = delay &- delays.removeFirst()
    let before = fallsBehind
    fallsBehind = growth >= (before ? Self.fine : Self.tooMuch)
    return fallsBehind == before ? nil : fallsBehind
  }
}
