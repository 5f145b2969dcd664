package import NIOCore
internal import NIOHTTP1

extension HTTPAnswer {
  /// What somebody finds out who may have to wait for a disk. A disk that is frozen is not waited for longer than
  /// `patience`: the client hears so (503), and what had been asked for happens when the disk goes on, for nobody.
  package static func fromDisk(
    _ future: EventLoopFuture<HTTPResponse>, on eventLoop: any EventLoop, patience: TimeAmount = .seconds(3)
  ) -> HTTPAnswer {
    let promise = eventLoop.makePromise(of: HTTPResponse.self)
    let late = eventLoop.scheduleTask(in: patience) { promise.succeed(diskDoesNotAnswer.response) }
    // Whoever comes second finds it fulfilled, and is not heard.
    future.whenComplete { result in
      late.cancel()
      promise.completeWith(result)
    }
    return .later(promise.futureResult)
  }

  private static let diskDoesNotAnswer = Problem(
    status: .serviceUnavailable, title: "The disk does not answer",
    detail: "The disk that the recordings are on is busy or frozen.",
    help: "Try again in 5 seconds. What you changed may be done by then.",
    headers: [HeaderField("Retry-After", "5")])
}
