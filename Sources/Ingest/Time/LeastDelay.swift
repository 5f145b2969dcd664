/// The least delay of each slice of time: of a slice only the sample that came most directly counts, since a network only
/// ever adds to what a sample's way takes. A value.
struct LeastDelay: Sendable {
  /// Nanoseconds that samples are taken together for.
  let slice: Int64
  private var current: (began: Int64, delay: Int64)?

  init(slice: Int64) { self.slice = slice }

  /// Takes a sample's place on the timeline and its arrival, both in nanoseconds. Returns the least arrival minus
  /// place of the slice that is complete with it, in nanoseconds.
  mutating func saw(_ time: Int64, now: Int64) -> Int64? {
    let delay = now &- time
    guard let slice = current, now &- slice.began >= self.slice else {
      current = (current?.began ?? now, min(current?.delay ?? delay, delay))
      return nil
    }
    current = (now, delay)
    return slice.delay
  }
}
