package import Base
package import Logging
internal import Synchronization

/// The keys that tokens are verified with: those of the configuration, and those of a set at an address, which its owner may
/// change at any time.
package final class JSONWebKeys: Sendable {
  package typealias Fetch = @Sendable () async throws(ValueError) -> [JSONWebKey]

  /// The times of a set at an address.
  package struct Times: Sendable, Hashable {
    /// It is fetched again after this time, and earlier where its keys would hold no longer by then.
    var refresh: Duration { min(.seconds(300), staleness / 3) }
    /// It is fetched at most once in this time, however many tokens ask for it.
    var pause = Duration.seconds(10)
    /// Without a successful fetch within this time its keys are no longer accepted.
    package var staleness = Duration.seconds(86_400)

    package init(pause: Duration = Duration.seconds(10), staleness: Duration = Duration.seconds(86_400)) {
      (self.pause, self.staleness) = (pause, staleness)
    }
  }

  /// A key without a name is tried for any token; more than these are not tried for one token.
  private static let tries = 8

  private struct State {
    var local: [JSONWebKey]
    /// Nil without a set at an address.
    var fetch: Fetch?
    var address: JSONWebKeySetAddress?
    var times: Times
    var remote: [JSONWebKey] = []
    var fetchedAt: MonotonicTime?
    var triedAt: MonotonicTime?
    var fetching: Task<Void, Never>?
    /// Counts the addresses: what was fetched from an earlier one is not taken.
    var addresses = 0
  }

  private let state: Mutex<State>
  private let withdrawn = Atomic(0)
  /// Woken when there is another address.
  private let waker = Waker()
  private let now: @Sendable () -> MonotonicTime
  private let logger: Logger?

  /// - Parameters:
  ///   - address: where the set is, to know it again at a reload.
  ///   - fetch: gets the set at the address; nil without one.
  package init(
    _ local: [JSONWebKey], at address: JSONWebKeySetAddress? = nil, fetch: Fetch? = nil, times: Times = Times(),
    now: @escaping @Sendable () -> MonotonicTime = MonotonicTime.now, logger: Logger? = nil
  ) {
    state = Mutex(State(local: local, fetch: fetch, address: address, times: times))
    (self.now, self.logger) = (now, logger)
  }

  /// The keys that may have signed a token: of its algorithm, and of its name if it names one.
  func candidates(for token: JSONWebToken) -> [JSONWebKey] {
    let usable = state.withLock { $0.local + $0.remote }.filter { $0.algorithm == token.algorithm && !$0.isWithdrawn }
    let named = usable.filter { token.keyID != nil && $0.id == token.keyID }
    return Array((named.isEmpty ? usable.filter { token.keyID == nil || $0.id == nil } : named).prefix(Self.tries))
  }

  /// Whether a fetch may bring the key of this token: no key has its name, and the last fetch was long enough ago.
  func mayFindKey(of token: JSONWebToken) -> Bool {
    guard token.algorithm != .hs256 else { return false }
    let now = now()
    return state.withLock { state in
      state.fetch != nil && !state.remote.contains { $0.id == token.keyID && !$0.isWithdrawn }
        && (state.fetching != nil || isDue(state.triedAt, after: state.times.pause, now))
    }
  }

  /// Fetches the set, or waits for the fetch that is under way.
  func refresh() async { await fetching()?.value }

  /// Begins to fetch the set, unless that is under way. Does not wait.
  package func beginRefresh() { _ = fetching() }

  /// The fetch that is under way, which begins now if there is none.
  private func fetching() -> Task<Void, Never>? {
    state.withLock { state in
      guard let fetch = state.fetch else { return nil }
      if let fetching = state.fetching { return fetching }
      state.triedAt = now()
      let task = Task { [addresses = state.addresses] in await self.take(fetch, addresses) }
      state.fetching = task
      return task
    }
  }

  private func take(_ fetch: Fetch, _ addresses: Int) async {
    do throws(ValueError) {
      let keys = try await fetch()
      let now = now()
      state.withLock { state in
        guard state.addresses == addresses else { return }
        state.fetching = nil
        state.fetchedAt = now
        state.remote = replacing(state.remote, by: keys)
      }
    } catch {
      state.withLock { if $0.addresses == addresses { $0.fetching = nil } }
      logger?.warning("the key set for tokens cannot be fetched: \(error.reason)")
    }
  }

  /// Keys that are in both stay the same objects, so that what they verified goes on. The others are withdrawn.
  private func replacing(_ old: [JSONWebKey], by new: [JSONWebKey]) -> [JSONWebKey] {
    for key in old where !new.contains(where: { $0.equals(key) }) {
      key.withdraw()
      withdrawn.add(1, ordering: .relaxed)
    }
    return new.map { key in old.first { $0.equals(key) && !$0.isWithdrawn } ?? key }
  }

  /// Gets the set at an address.
  static func fetch(of address: JSONWebKeySetAddress) -> Fetch {
    { () async throws(ValueError) in try await address.fetch() }
  }

  /// Other keys of the configuration.
  func replaceLocal(by keys: [JSONWebKey]) {
    state.withLock { $0.local = replacing($0.local, by: keys) }
  }

  /// How many keys were withdrawn so far.
  package var withdrawals: Int { withdrawn.load(ordering: .relaxed) }

  /// The address of the set; nil without one.
  var address: JSONWebKeySetAddress? { state.withLock { $0.address } }

  /// Another configuration. Keys that stay the same go on, the others are withdrawn.
  ///
  /// - Parameters:
  ///   - address: of the set; nil for none.
  ///   - fetched: what the set at a new address has; nil if it could not be fetched.
  func follow(
    local: [JSONWebKey], at address: JSONWebKeySetAddress?, fetched: [JSONWebKey]?, times: Times
  ) {
    let now = now()
    defer { waker.wake() }
    state.withLock { state in
      state.local = replacing(state.local, by: local)
      state.times = times
      guard state.address != address else { return }
      state.address = address
      state.fetch = address.map(Self.fetch(of:))
      state.addresses += 1
      state.fetching = nil
      state.triedAt = address.map { _ in now }
      state.fetchedAt = fetched.map { _ in now }
      state.remote = replacing(state.remote, by: fetched ?? [])
    }
  }

  /// Fetches the set when it is due, until the task is cancelled. Without an address it waits for one.
  package func run() async {
    while !Task.isCancelled {
      let wakes = waker.count
      if isRefreshDue { await refresh() }
      withdrawIfStale()
      await waker.sleep(for: max(.seconds(1), timeToWork), since: wakes)
    }
  }

  /// How long `run` has nothing to do, as far as is known: until the set is fetched again, or holds no longer.
  var timeToWork: Duration {
    let now = now()
    return state.withLock { state in
      func left(of time: Duration, since last: MonotonicTime?) -> Duration {
        last.map { max(.zero, time - .nanoseconds(now &- $0)) } ?? .zero
      }
      var times = [Duration.seconds(3600)]
      if state.fetch != nil {
        times.append(
          max(
            left(of: state.times.refresh, since: state.fetchedAt), left(of: state.times.pause, since: state.triedAt)))
      }
      if !state.remote.isEmpty { times.append(left(of: state.times.staleness, since: state.fetchedAt)) }
      return times.min() ?? .zero
    }
  }

  private var isRefreshDue: Bool {
    let now = now()
    return state.withLock { state in
      state.fetch != nil && isDue(state.fetchedAt, after: state.times.refresh, now)
        && isDue(state.triedAt, after: state.times.pause, now)
    }
  }

  /// Withdraws the keys of the address once it has been out of reach for too long.
  func withdrawIfStale() {
    let now = now()
    let stale = state.withLock { state -> Duration? in
      guard !state.remote.isEmpty, isDue(state.fetchedAt, after: state.times.staleness, now) else { return nil }
      state.remote = replacing(state.remote, by: [])
      return state.times.staleness
    }
    if let stale {
      logger?.error(
        "the key set for tokens could not be fetched for \(DurationText.text(stale)): its keys hold no longer"
      )
    }
  }

  private func isDue(_ last: MonotonicTime?, after time: Duration, _ now: MonotonicTime) -> Bool {
    last.map { now &- $0 >= time.wholeMilliseconds &* 1_000_000 } ?? true
  }
}
