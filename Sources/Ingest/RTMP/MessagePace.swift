/// How fast the messages of one connection are taken: so many small ones at once, and then a rate. Who sends faster is not
/// ended but waits, because it is not read. Large messages cost little here: their bytes are what they cost, and those are
/// bounded elsewhere. A value, told what time it is, in nanoseconds on a clock that never goes back.
struct MessagePace {
  /// A message costs so many parts at most, one less with every `step` bytes, and one at least.
  private static let parts = 16
  private static let step = 64

  /// How long a small message takes.
  private let interval: Int64
  private let burst: Int64
  private let breather: Int64
  /// When all that was taken would have come at the rate and no faster.
  private var due: Int64 = 0

  /// `batch` messages are taken together once their sender has had to wait.
  init(
    burst: Int64 = RTMPLimits.messageBurst, perSecond: Int64 = RTMPLimits.messagesPerSecond,
    batch: Int64 = RTMPLimits.messageBatch
  ) {
    interval = 1_000_000_000 / max(1, perSecond)
    self.burst = burst &* interval
    breather = min(batch, burst) &* interval
  }

  /// A message of so many bytes was taken.
  mutating func count(_ bytes: Int, at now: Int64) {
    let cost = max(1, Self.parts - bytes / Self.step)
    due = max(due, now) &+ interval &* Int64(cost) / Int64(Self.parts)
  }

  /// When the next one may be taken, where that is not now.
  func pause(at now: Int64) -> Int64? {
    due &- now >= burst ? due &- burst &+ breather : nil
  }

  /// Until then more than half of what may come at once has come.
  var relief: Int64 { due &- burst / 2 }

  /// A whole burst may come again.
  mutating func forgive() { due = 0 }
}
