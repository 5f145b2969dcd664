internal import NIOCore
internal import NIOPosix

/// An event that was told. What others can see of it waits until the event is written, or until the disk took too long.
package struct EventTicket: Sendable {
  fileprivate let log: EventLog?
  let id: Int64

  init(log: EventLog?, id: Int64) { (self.log, self.id) = (log, id) }

  /// Nothing is to be waited for.
  package static let settled = EventTicket(log: nil, id: 0)

  /// Runs `body`, on another thread, once the event is written. False if it is written already: then `body` is not run.
  package func whenWritten(_ body: @escaping @Sendable () -> Void) -> Bool { log?.whenSettled(id, body) ?? false }

  /// Blocks the calling thread until the event is written. Not for event loops.
  package func wait() {
    guard let future = future() else { return }
    try? future.wait()
  }

  /// Returns when the event is written.
  package func written() async {
    guard let future = future() else { return }
    try? await future.get()
  }

  /// Nil if it is written already. The log bounds the waiting; this bound holds while nothing tends the log, at start and stop.
  private func future() -> EventLoopFuture<Void>? {
    let loop = MultiThreadedEventLoopGroup.singleton.any()
    let promise = loop.makePromise(of: Void.self)
    guard whenWritten({ promise.succeed() }) else {
      promise.succeed()
      return nil
    }
    let late = loop.scheduleTask(in: .seconds(2)) { promise.succeed() }
    promise.futureResult.whenComplete { _ in late.cancel() }
    return promise.futureResult
  }
}
