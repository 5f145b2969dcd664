internal import Ingest
internal import Logging
internal import Synchronization

/// How often each address showed a wrong admin token: more than a few, and it is not listened to for a while, whatever it
/// shows. Bounded; the addresses that tried last are remembered.
final class AdminAttempts: Sendable {
  /// Wrong tokens that an address may show at once, and how many of them are forgiven in a second.
  static let burst = 20.0
  static let perSecond = 1.0
  /// Addresses that are remembered.
  fileprivate static let addresses = 4096

  private let clock: SteadyClock
  private let logger: Logger?
  private let state = Mutex(State())

  fileprivate struct State {
    var buckets: [NetworkAddress?: TokenBucket] = [:]
    var wrong = 0
    var refused = 0
  }

  init(clock: SteadyClock = .system(), logger: Logger? = nil) {
    self.clock = clock
    self.logger = logger
  }

  /// Seconds for which the address is not listened to; nil where it is.
  func pause(of address: NetworkAddress?) -> Int? {
    let now = clock.monotonicNanoseconds()
    return state.withLock { state in
      guard var bucket = state.buckets[address?.host] else { return nil }
      bucket.refill(now: now)
      guard bucket.tokens < 1 else { return nil }
      state.refused += 1
      return max(1, Int(bucket.secondsUntilToken.rounded(.up)))
    }
  }

  /// The address has shown a wrong token.
  func fail(_ address: NetworkAddress?) {
    let now = clock.monotonicNanoseconds()
    state.withLock { state in
      state.wrong += 1
      if state.buckets.count >= Self.addresses, state.buckets[address?.host] == nil { state.forgetSome(now) }
      var bucket = state.buckets[address?.host] ?? TokenBucket(burst: Self.burst, perSecond: Self.perSecond)
      _ = bucket.take(now: now)
      state.buckets[address?.host] = bucket
    }
    logger?.warning(
      "a wrong admin token came over HTTP", metadata: ["remote": "\(address?.host.hostText ?? "unknown")"])
  }

  /// Wrong tokens, and requests that were not listened to.
  var counts: (wrong: Int, refused: Int) { state.withLock { ($0.wrong, $0.refused) } }
}

extension AdminAttempts.State {
  /// Those that are forgiven go; if there are none, all.
  fileprivate mutating func forgetSome(_ now: Int64) {
    for (address, bucket) in buckets {
      var bucket = bucket
      bucket.refill(now: now)
      if bucket.tokens >= AdminAttempts.burst { buckets[address] = nil }
    }
    if buckets.count >= AdminAttempts.addresses { buckets = [:] }
  }
}
