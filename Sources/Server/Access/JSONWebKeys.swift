internal import Basics
internal import FMP4
internal import Ingest
internal import Logging
internal import Synchronization

/// The keys that tokens are verified with: those of the configuration, and those of a set at an address, which its owner may
/// change at any time.
final class JSONWebKeys: Sendable {
  typealias Fetch = @Sendable () async throws(ValueError) -> [JSONWebKey]

  /// The times of a set at an address.
  struct Times: Sendable, Hashable {
    /// It is fetched again after this time.
    var refresh = Duration.seconds(300)
    /// It is fetched at most once in this time, however many tokens ask for it.
    var pause = Duration.seconds(10)
    /// Without a successful fetch within this time its keys are no longer accepted.
    var staleness = Duration.seconds(86_400)
  }

  /// A key without a name is tried for any token; more than these are not tried for one token.
  private static let tries = 8

  private struct State {
    var local: [JSONWebKey]
    var remote: [JSONWebKey] = []
    var fetchedAt: MonotonicTime?
    var triedAt: MonotonicTime?
    var fetching: Task<Void, Never>?
  }

  private let state: Mutex<State>
  private let fetch: Fetch?
  private let times: Times
  private let now: @Sendable () -> MonotonicTime
  private let logger: Logger?

  /// - Parameter fetch: gets the set at the address; nil without one.
  init(
    _ local: [JSONWebKey], fetch: Fetch? = nil, times: Times = Times(),
    now: @escaping @Sendable () -> MonotonicTime = MonotonicTime.now, logger: Logger? = nil
  ) {
    state = Mutex(State(local: local))
    (self.fetch, self.times, self.now, self.logger) = (fetch, times, now, logger)
  }

  /// The keys that may have signed a token: of its algorithm, and of its name if it names one.
  func candidates(for token: JSONWebToken) -> [JSONWebKey] {
    let usable = state.withLock { $0.local + $0.remote }.filter { $0.algorithm == token.algorithm && !$0.isWithdrawn }
    let named = usable.filter { token.keyID != nil && $0.id == token.keyID }
    return Array((named.isEmpty ? usable.filter { token.keyID == nil || $0.id == nil } : named).prefix(Self.tries))
  }

  /// Whether a fetch may bring the key of this token: no key has its name, and the last fetch was long enough ago.
  func mayFindKey(of token: JSONWebToken) -> Bool {
    guard fetch != nil, token.algorithm != .hs256 else { return false }
    let now = now()
    return state.withLock { state in
      !state.remote.contains { $0.id == token.keyID && !$0.isWithdrawn }
        && (state.fetching != nil || isDue(state.triedAt, after: times.pause, now))
    }
  }

  /// Fetches the set, or waits for the fetch that is under way.
  func refresh() async {
    guard let fetch else { return }
    let task = state.withLock { state in
      if let fetching = state.fetching { return fetching }
      state.triedAt = now()
      let task = Task { await self.take(fetch) }
      state.fetching = task
      return task
    }
    await task.value
  }

  private func take(_ fetch: Fetch) async {
    do throws(ValueError) {
      let keys = try await fetch()
      let now = now()
      state.withLock { state in
        state.fetching = nil
        state.fetchedAt = now
        state.remote = Self.replacing(state.remote, by: keys)
      }
    } catch {
      state.withLock { $0.fetching = nil }
      logger?.warning("the key set for tokens cannot be fetched: \(error.reason)")
    }
  }

  /// Keys that are in both stay the same objects, so that what they verified goes on. The others are withdrawn.
  private static func replacing(_ old: [JSONWebKey], by new: [JSONWebKey]) -> [JSONWebKey] {
    for key in old where !new.contains(where: { $0.equals(key) }) { key.withdraw() }
    return new.map { key in old.first { $0.equals(key) && !$0.isWithdrawn } ?? key }
  }

  /// Other keys of the configuration.
  func replaceLocal(by keys: [JSONWebKey]) {
    state.withLock { $0.local = Self.replacing($0.local, by: keys) }
  }

  /// Fetches the set when it is due, until the task is cancelled.
  func run() async {
    guard fetch != nil else { return }
    while !Task.isCancelled {
      if isRefreshDue { await refresh() }
      withdrawIfStale()
      try? await Task.sleep(for: .seconds(1))
    }
  }

  private var isRefreshDue: Bool {
    let now = now()
    return state.withLock { state in
      isDue(state.fetchedAt, after: times.refresh, now) && isDue(state.triedAt, after: times.pause, now)
    }
  }

  /// Withdraws the keys of the address once it has been out of reach for too long.
  func withdrawIfStale() {
    let now = now()
    let isStale = state.withLock { state in
      guard !state.remote.isEmpty, isDue(state.fetchedAt, after: times.staleness, now) else { return false }
      state.remote = Self.replacing(state.remote, by: [])
      return true
    }
    if isStale {
      logger?.error(
        "the key set for tokens could not be fetched for \(DurationText.text(times.staleness)): its keys hold no longer"
      )
    }
  }

  private func isDue(_ last: MonotonicTime?, after time: Duration, _ now: MonotonicTime) -> Bool {
    last.map { now &- $0 >= time.wholeMilliseconds &* 1_000_000 } ?? true
  }
}
