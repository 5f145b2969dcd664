package import NIOCore
internal import NIOPosix
internal import Synchronization

/// Runs slow work once for all concurrent requests with the same key, on the threads of a pool. Limits the number of keys
/// that wait.
package final class SingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// Which requests share a value.
  package enum Sharing: Sendable {
    /// All requests before the work is done.
    case untilDone
    /// Only requests before the work begins, so that no value is older than its request.
    case untilBegun
  }

  private let limit: Int
  private let pool: any WorkThreads
  private let sharing: Sharing
  private let waiting = Mutex<[Key: [EventLoopPromise<Value>]]>([:])

  /// - Parameter limit: the most keys that wait or are under way.
  package init(limit: Int, on pool: any WorkThreads, sharing: Sharing = .untilDone) {
    self.limit = limit
    self.pool = pool
    self.sharing = sharing
  }

  private enum Step {
    case begin, join, refuse
  }

  /// The value of a key. Nil when too many keys wait. `make` runs once, on a thread of the pool.
  package func value(
    of key: Key, on eventLoop: any EventLoop, make: @escaping @Sendable () -> Value
  ) -> EventLoopFuture<Value>? {
    let promise = eventLoop.makePromise(of: Value.self)
    let step: Step = waiting.withLock { waiting in
      if waiting[key] != nil {
        waiting[key]?.append(promise)
        return .join
      }
      guard waiting.count < limit else { return .refuse }
      waiting[key] = [promise]
      return .begin
    }
    switch step {
    case .begin:
      pool.submit { state in
        // A pool that was shut down runs no work, so the waiting requests fail.
        guard case .active = state else { return self.finish(key) { $0.fail(CancellationError()) } }
        let sharers = self.sharing == .untilBegun ? self.take(key) : nil
        let value = make()
        for promise in sharers ?? self.take(key) { promise.succeed(value) }
      }
    case .join: break
    case .refuse:
      promise.fail(CancellationError())
      return nil
    }
    return promise.futureResult
  }

  /// Like `value`, for fast work: the first caller runs `make` at once, on its own thread.
  package func valueHere(of key: Key, on eventLoop: any EventLoop, make: () -> Value) -> Eventual<Value> {
    let other = waiting.withLock { waiting -> EventLoopFuture<Value>? in
      guard waiting[key] != nil else {
        waiting[key] = []
        return nil
      }
      let promise = eventLoop.makePromise(of: Value.self)
      waiting[key]?.append(promise)
      return promise.futureResult
    }
    if let other { return .later(other) }
    let value = make()
    finish(key) { $0.succeed(value) }
    return .now(value)
  }

  private func finish(_ key: Key, _ tell: (EventLoopPromise<Value>) -> Void) {
    for promise in take(key) { tell(promise) }
  }

  private func take(_ key: Key) -> [EventLoopPromise<Value>] {
    waiting.withLock { $0.removeValue(forKey: key) } ?? []
  }
}

extension EventLoopFuture where Value: Sendable {
  /// The same value, or `value` when it takes longer than `patience`.
  package func orElse(_ value: Value, after patience: TimeAmount) -> EventLoopFuture<Value> {
    let promise = eventLoop.makePromise(of: Value.self)
    let timeout = eventLoop.scheduleTask(in: patience) { promise.succeed(value) }
    whenComplete { result in
      timeout.cancel()
      promise.completeWith(result)
    }
    return promise.futureResult
  }
}
