package import Base
package import FMP4
package import HTTP
package import Logging
package import NIOCore
internal import NIOHTTP1
internal import Publishing
internal import Storage
internal import Streams
internal import Synchronization
internal import Transcode

/// `/live/{stream}/thumbnail.jpg`: the newest key frame that starts a segment, as a JPEG. A worker makes it on request, at most
/// once for each segment, while a thread waits for the worker. A thumbnail that failed is not tried again for that segment.
package final class Thumbnails: Sendable {
  /// Makes a JPEG of a sync sample. Slow.
  package typealias Maker = @Sendable (_ sample: ByteBuffer, _ track: TrackDescription) throws -> ByteBuffer

  private let make: Maker
  private let logger: Logger
  private let flight: SingleFlight<Source, Outcome>
  /// The newest thumbnail of each stream.
  private let thumbnails = Mutex<[StreamName: (source: Source, outcome: Outcome)]>([:])

  /// Requests that may wait for the thread; further ones get 503.
  private static let queueLimit = 32
  /// Limit of kept thumbnails, because publishers choose stream names.
  private static let thumbnailLimit = 256
  /// How long a request waits for its thumbnail.
  package static let patience = TimeAmount.seconds(5)

  /// The key frame of a thumbnail.
  private struct Source: Hashable {
    var stream: StreamName
    var epoch: String
    var segment: Int
  }

  private enum Outcome {
    case made(ByteBuffer)
    case failed
  }

  package init(
    logger: Logger, pool: any WorkThreads, make: @escaping Maker = StillImageMaker(launcher: .ownProcess).jpeg
  ) {
    self.make = make
    self.logger = logger
    flight = SingleFlight(limit: Self.queueLimit, on: pool)
  }

  /// 404 without a video track. 503 before the first key frame, and if the thread is too busy. 500 if the key frame cannot be
  /// decoded.
  func answer(for stream: LiveStream, on eventLoop: any EventLoop) -> HTTPAnswer {
    let epoch = stream.epoch
    guard let initSegment = epoch.initSegment else { return .now(Self.notYet) }
    guard initSegment.tracks.contains(where: { $0.kind == .video }) else {
      return .now(Problem(.noVideo, "The stream \"\(stream.name)\" has no video.").response)
    }
    guard let keyFrame = epoch.window.newestKeyFrame else { return .now(Self.notYet) }
    let source = Source(stream: stream.name, epoch: epoch.id, segment: keyFrame.segment)
    if let known = thumbnails.withLock({ $0[stream.name] }), known.source == source {
      return .now(Self.response(known.outcome, source))
    }
    let made = flight.value(of: source, on: eventLoop) { self.thumbnail(source, keyFrame) }
    guard let made else { return .now(Self.tooBusy) }
    return .later(made.map { Self.response($0, source) }.orElse(Self.tooBusy, after: Self.patience))
  }

  /// Runs on a pool thread.
  private func thumbnail(_ source: Source, _ keyFrame: LiveWindow.KeyFrame) -> Outcome {
    // Another request may have made it between the first look and this one.
    if let known = thumbnails.withLock({ $0[source.stream] }), known.source == source { return known.outcome }
    let outcome: Outcome
    do {
      outcome = .made(try make(try keyFrame.range.read(), keyFrame.track))
    } catch {
      logger.of(source.stream).warning("no thumbnail of segment \(source.segment): \(error)")
      outcome = .failed
    }
    thumbnails.withLock { known in
      if known.count >= Self.thumbnailLimit { known = [:] }
      known[source.stream] = (source, outcome)
    }
    return outcome
  }
}

extension Thumbnails {
  private static let notYet = Problem(
    .noKeyFrameYet, "The stream has no key frame yet.", help: "Try again in a second.", retryAfter: 1
  ).response

  package static let tooBusy = Problem(
    .thumbnailsBusy, "Other thumbnails are being made.", help: "Try again in 2 seconds.", retryAfter: 2
  ).response

  private static func response(_ outcome: Outcome, _ source: Source) -> HTTPResponse {
    guard case .made(let jpeg) = outcome else {
      return Problem(
        .noThumbnail, "The newest key frame cannot be decoded.",
        help: "Try the next segment; the log says why this one failed."
      ).response
    }
    return HTTPResponse(
      headers: [
        HeaderField("Content-Type", ContentType.jpeg.rawValue),
        HeaderField("Cache-Control", CachePolicy.livePlaylist.value),
      ], entityTag: "\"\(source.epoch)-\(source.segment)\"", body: .pieces([.bytes(jpeg)]))
  }
}
