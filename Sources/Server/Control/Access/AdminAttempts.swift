package import Base
package import Logging
internal import Synchronization

/// Counts the wrong tokens of each client address, of administrators or of viewers. An address with too many is refused for a while, even with the right
/// token. Bounded; the most recent addresses are remembered.
package final class AdminAttempts: Sendable {
  /// Wrong tokens that an address may send at once, and how many of them are forgiven per second.
  static let burst = 20.0
  static let perSecond = 1.0
  /// Limit of remembered addresses.
  fileprivate static let addresses = 4096

  /// Whose tokens are counted.
  package enum Tokens: String, Sendable {
    case administrators = "a wrong admin token"
    case viewers = "a wrong viewer's token"
  }

  private let tokens: Tokens
  private let clock: SteadyClock
  private let events: EventLog?
  private let logger: Logger?
  private let state = Mutex(State())

  fileprivate struct State {
    var buckets: [NetworkAddress?: TokenBucket] = [:]
    var wrong = 0
    var refused = 0
  }

  package init(
    of tokens: Tokens = .administrators, clock: SteadyClock = .system(), events: EventLog? = nil, logger: Logger? = nil
  ) {
    self.tokens = tokens
    self.clock = clock
    self.events = events
    self.logger = logger
  }

  /// Seconds for which requests of the address are refused; nil if they are not.
  package func pause(of address: NetworkAddress?) -> Int? {
    let now = clock.monotonic()
    return state.withLock { state in
      guard var bucket = state.buckets[address?.host] else { return nil }
      bucket.refill(now: now)
      guard bucket.tokens < 1 else { return nil }
      state.refused += 1
      return max(1, Int(bucket.secondsUntilToken.rounded(.up)))
    }
  }

  /// The address has sent a wrong token.
  ///
  /// - Parameter isTold: false for what may not have been meant as one: it slows guessing, and is told nowhere.
  package func fail(_ address: NetworkAddress?, isTold: Bool = true) {
    let now = clock.monotonic()
    state.withLock { state in
      if isTold { state.wrong += 1 }
      if state.buckets.count >= Self.addresses, state.buckets[address?.host] == nil { state.forgetSome(now) }
      var bucket = state.buckets[address?.host] ?? TokenBucket(burst: Self.burst, perSecond: Self.perSecond)
      _ = bucket.take(now: now)
      state.buckets[address?.host] = bucket
    }
    guard isTold else { return }
    events?.tell(
      .accessRefused, by: address?.host.hostText, because: tokens.rawValue, ["reason": .text(tokens.rawValue)])
    logger?.log(
      level: tokens == .administrators ? .warning : .notice, "\(tokens.rawValue) came over HTTP",
      metadata: ["remote": "\(address?.host.hostText ?? "unknown")"])
  }

  /// Numbers of wrong tokens and of refused requests.
  package var counts: (wrong: Int, refused: Int) { state.withLock { ($0.wrong, $0.refused) } }
}

extension AdminAttempts.State {
  /// Forgets addresses whose attempts are forgiven; if there are none, all addresses.
  fileprivate mutating func forgetSome(_ now: MonotonicTime) {
    for (address, bucket) in buckets {
      var bucket = bucket
      bucket.refill(now: now)
      if bucket.tokens >= AdminAttempts.burst { buckets[address] = nil }
    }
    if buckets.count >= AdminAttempts.addresses { buckets = [:] }
  }
}
