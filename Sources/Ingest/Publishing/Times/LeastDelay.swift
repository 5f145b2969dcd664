internal import Base
/// The least delay of each time slice. Only the sample with the least delay counts, because a network only adds delay.
/// A value type.
struct LeastDelay: Sendable {
  /// Length of a slice in nanoseconds.
  let slice: Int64
  private var current: (began: MonotonicTime, delay: MonotonicTime)?

  init(slice: Int64) { self.slice = slice }

  /// Takes a sample's place on the timeline, in nanoseconds, and its arrival. Returns the least arrival minus place of the
  /// slice that it completes.
  mutating func saw(_ time: Int64, now: MonotonicTime) -> MonotonicTime? {
    let delay = now &- time
    guard let slice = current, now &- slice.began >= self.slice else {
      current = (current?.began ?? now, min(current?.delay ?? delay, delay))
      return nil
    }
    current = (now, delay)
    return slice.delay
  }
}
