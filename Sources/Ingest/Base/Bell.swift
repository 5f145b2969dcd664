package import NIOCore
internal import NIOPosix
internal import Synchronization

/// Waits until a condition holds. Code that may have changed the condition calls `ring`, and each condition is tested again.
package final class Bell: Sendable {
  private struct Waiters {
    var all: [Int: (isMet: @Sendable () -> Bool, promise: EventLoopPromise<Bool>)] = [:]
    var count = 0
  }

  private let waiters = Mutex(Waiters())

  package init() {}

  /// True when the condition holds within `patience`, false otherwise. Waits on `eventLoop`, or on any loop.
  package func wait(
    on eventLoop: (any EventLoop)? = nil, patience: TimeAmount,
    until isMet: @escaping @Sendable () -> Bool
  ) -> EventLoopFuture<Bool> {
    let eventLoop = eventLoop ?? MultiThreadedEventLoopGroup.singleton.any()
    let promise = eventLoop.makePromise(of: Bool.self)
    let number = waiters.withLock { waiters in
      waiters.count += 1
      waiters.all[waiters.count] = (isMet, promise)
      return waiters.count
    }
    let late = eventLoop.scheduleTask(in: patience) { self.answer(number, isMet()) }
    promise.futureResult.whenComplete { _ in late.cancel() }
    ring()
    return promise.futureResult
  }

  package func ring() {
    let all = waiters.withLock { $0.all }
    for (number, waiter) in all where waiter.isMet() { answer(number, true) }
  }

  private func answer(_ number: Int, _ isMet: Bool) {
    waiters.withLock { $0.all.removeValue(forKey: number) }?.promise.succeed(isMet)
  }
}
