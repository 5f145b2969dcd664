package import NIOCore
package import NIOPosix

/// Threads for work that may wait, for a disk or for another process, since event loops must not.
package protocol WorkThreads: Sendable {
  /// Runs `body` on a thread. It hears whether the threads have ended instead.
  func submit(_ body: @escaping @Sendable (NIOThreadPool.WorkItemState) -> Void)
}

extension NIOThreadPool: WorkThreads {}

extension WorkThreads {
  /// The result of `body`. Fails once the threads have ended.
  package func runIfActive<Value: Sendable>(
    eventLoop: any EventLoop, _ body: @escaping @Sendable () throws -> Value
  ) -> EventLoopFuture<Value> {
    let promise = eventLoop.makePromise(of: Value.self)
    submit { state in
      switch state {
      case .active: promise.completeWith(Result { try body() })
      case .cancelled: promise.fail(NIOThreadPoolError.ThreadPoolInactive())
      }
    }
    return promise.futureResult
  }

  /// The result of `body`. Throws once the threads have ended.
  package func runIfActive<Value: Sendable>(
    _ body: @escaping @Sendable () throws -> Value
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      submit { state in
        switch state {
        case .active: continuation.resume(with: Result { try body() })
        case .cancelled: continuation.resume(throwing: NIOThreadPoolError.ThreadPoolInactive())
        }
      }
    }
  }
}
