/// How much a viewer's network carries, by two witnesses: its estimate, and what its reports say of loss and of the way there and
/// back. An estimate alone may be low because little was sent, or because a busy machine took packets late. A value type.
struct ViewerNetwork {
  /// By its own word, in bytes per second (REMB); nil if it does not say.
  private(set) var estimate: Int64?
  /// The estimate fell below what was sent, and does not reach the stream's rate yet.
  private var isLow = false
  /// While reports show a full network, and for a while behind that: it may get so many fourths of its estimate.
  private var share: Int64?
  /// The shortest way there and back, in nanoseconds.
  private var shortest: Int64?
  /// Sender reports, the newest last: the middle of its clock, and when it was sent.
  private var sent: [(clock: UInt32, at: MonotonicTime)] = []

  /// Somewhat more than the network carries, so that the estimate can rise; each report that shows no loss allows half as much
  /// more, until so much is allowed that nothing is.
  private static let (leastShare, mostShare): (Int64, Int64) = (5, 256)
  /// Loss in 256ths that a full network has, and that any may have.
  private static let (muchLost, littleLost): (UInt8, UInt8) = (26, 5)
  /// A way that is longer by so much leads through a queue, in nanoseconds.
  private static let queue: Int64 = 150_000_000
  /// A report that knows none of the last sender reports is of a network that holds them up. They are sent each second.
  private static let kept = 3
  /// What it may get at least, in bytes per second.
  private static let least: Int64 = 8 * 1024

  /// What it may get of a stream, in bytes per second; nil if nothing speaks against all of it.
  var limit: Int64? {
    guard isLow, let estimate, let share else { return nil }
    return max(estimate / 4 &* share, Self.least)
  }

  /// - Parameters:
  ///   - new: in bytes per second.
  ///   - rate: what was sent to it.
  ///   - stream: what it should get.
  mutating func take(estimate new: Int64, sent rate: Int64, stream: Int64) {
    let new = min(new, 1 << 40)
    let isFalling = estimate.map { new < $0 } ?? true
    isLow = isLow ? new < stream : isFalling && new < rate / 4 * 3
    estimate = new
  }

  /// A sender report goes out, whose clock has this in the middle of its 64 bits.
  mutating func reports(clock: UInt32, now: MonotonicTime) {
    if sent.count == Self.kept { sent.removeFirst() }
    sent.append((clock, now))
  }

  /// What it says of the packets of the video that came since its last report.
  mutating func take(_ reception: RTCPWriter.Reception, now: MonotonicTime) {
    // Before the first sender report came it says nothing of the way.
    guard reception.lastReport != 0 else { return }
    var isQueued = true
    if let report = sent.last(where: { $0.clock == reception.lastReport }) {
      let held = Int64(reception.sinceReport) &* 1_000_000_000 / 65536
      let way = max(0, now &- report.at &- held)
      shortest = min(way, shortest ?? way)
      isQueued = way &- (shortest ?? way) >= Self.queue
    }
    if isQueued || reception.fractionLost >= Self.muchLost {
      share = Self.leastShare
    } else if let known = share, reception.fractionLost < Self.littleLost {
      share = known < Self.mostShare ? known + known / 2 : nil
    }
  }
}
