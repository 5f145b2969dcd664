/// Counts events, and tells when there were more than `limit` within a time. It holds no memory before the first. A value; the
/// caller gives it the time, in ticks.
struct SlidingWindowLimit {
  let limit: Int
  let ticks: Int
  /// The ticks of the latest events, in order.
  private var events: [Int] = []

  init(limit: Int, ticks: Int) {
    self.limit = limit
    self.ticks = ticks
  }

  /// Whether there are no more than `limit` with this one.
  mutating func allows(at tick: Int) -> Bool {
    if events.count >= limit {
      events.removeFirst(events.firstIndex { tick &- $0 <= ticks } ?? events.count)
      guard events.count < limit else { return false }
    }
    events.append(tick)
    return true
  }
}
