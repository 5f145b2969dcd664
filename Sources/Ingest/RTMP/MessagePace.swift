internal import Base

/// Limits the rate of messages of one connection: a burst, then a fixed rate. A peer that sends faster is not
/// disconnected; weir stops reading from it for a while. Large messages cost little here, because other limits bound
/// their bytes. A value type.
struct MessagePace {
  /// A small message costs 16 parts. Each `step` bytes make it one part cheaper, down to one.
  private static let parts = 16
  private static let step = 64

  /// Nanoseconds per small message at the rate.
  private let interval: Int64
  private let burst: Int64
  private let batchTime: Int64
  /// Time at which all messages taken so far would have arrived at the rate.
  private var due = MonotonicTime.zero

  /// `batch` messages are taken together after a pause.
  init(
    burst: Int64 = RTMPLimits.messageBurst, perSecond: Int64 = RTMPLimits.messagesPerSecond,
    batch: Int64 = RTMPLimits.messageBatch
  ) {
    interval = 1_000_000_000 / max(1, perSecond)
    self.burst = burst &* interval
    batchTime = min(batch, burst) &* interval
  }

  /// Counts a message of this many bytes.
  mutating func count(_ bytes: Int, at now: MonotonicTime) {
    let cost = max(1, Self.parts - bytes / Self.step)
    due = max(due, now) &+ interval &* Int64(cost) / Int64(Self.parts)
  }

  /// Time at which the next message may be taken. Nil if it may be taken now.
  func pause(at now: MonotonicTime) -> MonotonicTime? {
    due &- now >= burst ? due &- burst &+ batchTime : nil
  }

  /// Time until which more than half of the burst is used.
  var relief: MonotonicTime { due &- burst / 2 }

  /// Allows a whole burst again.
  mutating func forgive() { due = .zero }
}
