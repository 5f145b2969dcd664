package import Base
package import Delivery
internal import HTTP
internal import LocalSources
internal import NIOCore
internal import NIOHTTP1
internal import Publishing
internal import Storage
internal import Streams
internal import Synchronization
internal import Transcode

/// `/api/v1/sources/{source}/preview.jpg`: the newest key frame of a local source, on air or off. A worker makes it, as for
/// thumbnails, once for each key frame.
package final class SourcePreviews: Sendable {
  private let make: Thumbnails.Maker
  private let flight: SingleFlight<StreamName, ByteBuffer?>
  private let made = Mutex<[StreamName: (number: Int, jpeg: ByteBuffer)]>([:])

  package init(pool: any WorkThreads, make: @escaping Thumbnails.Maker = StillImageMaker(launcher: .ownProcess).jpeg) {
    self.make = make
    // No limit is needed: the sources are those of the configuration.
    flight = SingleFlight(limit: .max, on: pool)
  }

  /// 503 before the first key frame, for a source without video, and if the thread is too busy. 500 if the key frame cannot be
  /// decoded.
  func answer(for source: LocalSource, on eventLoop: any EventLoop) -> HTTPAnswer {
    guard let keyFrame = source.keyFrame else { return .now(Self.notYet) }
    let name = source.name
    guard let made = flight.value(of: name, on: eventLoop, make: { self.jpeg(of: keyFrame, name) }) else {
      return .now(Self.noThumbnail)
    }
    let answer = made.map { jpeg in
      guard let jpeg else { return Self.noThumbnail }
      return HTTPResponse(
        headers: [
          HeaderField("Content-Type", ContentType.jpeg.rawValue),
          HeaderField("Cache-Control", CachePolicy.never.value),
        ], body: .pieces([.bytes(jpeg)]))
    }
    return .later(answer.orElse(Thumbnails.tooBusy, after: Thumbnails.patience))
  }

  /// Runs on a pool thread.
  private func jpeg(of keyFrame: SourceOutput.KeyFrame, _ name: StreamName) -> ByteBuffer? {
    if let known = made.withLock({ $0[name] }), known.number == keyFrame.number { return known.jpeg }
    guard let jpeg = try? make(keyFrame.sample, keyFrame.track) else { return nil }
    made.withLock { $0[name] = (keyFrame.number, jpeg) }
    return jpeg
  }

  static let notYet = Problem(
    .noKeyFrameYet, "The source has no key frame yet.", help: "Try again in a second.", retryAfter: 1
  ).response

  private static let noThumbnail = Problem(
    .noThumbnail, "The newest key frame cannot be decoded.", help: "Try the next key frame."
  ).response
}
