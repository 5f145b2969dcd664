/// A token bucket: allows bursts and limits the rate. A value type; the caller gives it the time.
package struct TokenBucket: Sendable {
  package private(set) var burst: Double
  package private(set) var perSecond: Double
  package private(set) var tokens: Double
  private var last: MonotonicTime?

  package init(burst: Double, perSecond: Double) {
    self.burst = burst
    self.perSecond = perSecond
    tokens = burst
  }

  /// Takes a token. False if there is none.
  package mutating func take(now: MonotonicTime) -> Bool {
    refill(now: now)
    guard tokens >= 1 else { return false }
    tokens -= 1
    return true
  }

  /// Adds the tokens of the time since the last call.
  package mutating func refill(now: MonotonicTime) {
    if let last, now > last {
      tokens = min(burst, tokens + Double(now &- last) / 1e9 * perSecond)
    }
    last = now
  }

  /// Allows another burst and rate from now on.
  package mutating func change(burst: Double, perSecond: Double) {
    // What was used of the burst stays used.
    tokens = min(burst, max(0, tokens + burst - self.burst))
    (self.burst, self.perSecond) = (burst, perSecond)
  }

  /// Seconds until the next token.
  package var secondsUntilToken: Double { tokens >= 1 ? 0 : (1 - tokens) / perSecond }
}
