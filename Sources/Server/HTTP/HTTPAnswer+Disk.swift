package import NIOCore
internal import NIOHTTP1

extension HTTPAnswer {
  /// A response that may block on a disk. After `patience` the client gets 503. The operation still happens when the disk
  /// responds; its result is dropped.
  package static func fromDisk(
    _ future: EventLoopFuture<HTTPResponse>, on eventLoop: any EventLoop, patience: TimeAmount = .seconds(3)
  ) -> HTTPAnswer {
    let promise = eventLoop.makePromise(of: HTTPResponse.self)
    let late = eventLoop.scheduleTask(in: patience) { promise.succeed(diskDoesNotAnswer.response) }
    // After the timeout, the promise is already fulfilled and this has no effect.
    future.whenComplete { result in
      late.cancel()
      promise.completeWith(result)
    }
    return .later(promise.futureResult)
  }

  private static let diskDoesNotAnswer = Problem(
    .diskNotResponding, "The disk that the recordings are on is busy or frozen.",
    help: "Try again in 5 seconds. What you changed may be done by then.", retryAfter: 5)
}
