package import NIOCore
package import NIOPosix
internal import Synchronization

/// Work that takes its time, done once for all who ask for the same meanwhile, on threads of a pool. How many different
/// things may wait is bounded.
package final class SingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// Who gets what is being made.
  package enum Sharing: Sendable {
    /// All who ask before it is there.
    case untilDone
    /// Those who ask before it is begun, so that nothing is older than the question.
    case untilBegun
  }

  private let limit: Int
  private let pool: NIOThreadPool
  private let sharing: Sharing
  private let waiting = Mutex<[Key: [EventLoopPromise<Value>]]>([:])

  /// - Parameter limit: how many things may wait or be under way.
  package init(limit: Int, on pool: NIOThreadPool, sharing: Sharing = .untilDone) {
    self.limit = limit
    self.pool = pool
    self.sharing = sharing
  }

  private enum Step {
    case begin, join, refuse
  }

  /// What comes of it; nil where too much waits. `make` is called on a thread, once for all who share it.
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
        // A pool that is shut down does nothing any more, and nobody is left waiting.
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

  /// The same where `make` takes little time: the first that asks makes it, at once.
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
  /// The same, or another value when it has not come within `patience`.
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
