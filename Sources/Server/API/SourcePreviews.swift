internal import Basics
internal import HTTP
internal import Ingest
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Storage
internal import Synchronization

/// `/api/v1/sources/{source}/preview.jpg`: the newest key frame of one of the server's own sources, on air or off. A worker
/// makes it, as it makes thumbnails, each key frame once.
final class SourcePreviews: Sendable {
  private let make: Thumbnails.Maker
  private let flight: SingleFlight<StreamName, ByteBuffer?>
  private let made = Mutex<[StreamName: (number: Int, jpeg: ByteBuffer)]>([:])

  init(pool: NIOThreadPool, make: @escaping Thumbnails.Maker = StillImageMaker(launcher: .ownProcess).jpeg) {
    self.make = make
    // There are as many as were configured.
    flight = SingleFlight(limit: .max, on: pool)
  }

  /// 503 before the first key frame, of what has no picture, and where the thread does not follow; 500 where the picture cannot be made.
  func answer(for source: LocalSource, on eventLoop: any EventLoop) -> HTTPAnswer {
    guard let keyFrame = source.keyFrame else { return .now(Self.notYet) }
    let name = source.name
    guard let made = flight.value(of: name, on: eventLoop, make: { self.jpeg(of: keyFrame, name) }) else {
      return .now(Self.noPicture)
    }
    let answer = made.map { jpeg in
      guard let jpeg else { return Self.noPicture }
      return HTTPResponse(
        headers: [
          HeaderField("Content-Type", ContentType.jpeg.rawValue),
          HeaderField("Cache-Control", CachePolicy.never.value),
        ], body: .pieces([.bytes(jpeg)]))
    }
    return .later(answer.orElse(Thumbnails.tooBusy, after: Thumbnails.patience))
  }

  /// On a thread.
  private func jpeg(of keyFrame: SourceOutput.KeyFrame, _ name: StreamName) -> ByteBuffer? {
    if let known = made.withLock({ $0[name] }), known.number == keyFrame.number { return known.jpeg }
    guard let jpeg = try? make(keyFrame.sample, keyFrame.track) else { return nil }
    made.withLock { $0[name] = (keyFrame.number, jpeg) }
    return jpeg
  }

  private static let notYet = Problem(
    status: .serviceUnavailable, title: "Not yet", detail: "The source has no key frame yet.",
    help: "Try again in a second.", headers: [HeaderField("Retry-After", "1")]
  ).response

  private static let noPicture = Problem(
    status: .internalServerError, title: "No picture", detail: "The newest key frame cannot be decoded.",
    help: "The next one may do."
  ).response
}
