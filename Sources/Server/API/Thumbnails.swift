internal import Basics
internal import FMP4
internal import HTTP
internal import Ingest
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Storage
internal import Synchronization

/// `/live/{stream}/thumbnail.jpg`: the newest key frame that starts a segment, as a JPEG. It is made when somebody
/// asks, at most once a segment whoever asks, by a worker for which a thread waits; a picture that cannot be made is not tried
/// again either.
final class Thumbnails: Sendable {
  /// Makes a JPEG of a sync sample. Takes its time.
  typealias Maker = @Sendable (_ sample: ByteBuffer, _ track: TrackDescription) throws -> ByteBuffer

  private let make: Maker
  private let logger: Logger
  private let flight: SingleFlight<Source, Outcome>
  /// The newest picture of each stream.
  private let pictures = Mutex<[StreamName: (source: Source, outcome: Outcome)]>([:])

  /// Pictures that wait for the thread before others are told to come back.
  private static let queueLimit = 32
  /// Pictures that are kept; streams come and go, and their names come from publishers.
  private static let pictureLimit = 256
  /// How long a request waits for its picture.
  static let patience = TimeAmount.seconds(5)

  /// Which picture it is.
  private struct Source: Hashable {
    var stream: StreamName
    var epoch: String
    var segment: Int
  }

  private enum Outcome {
    case made(ByteBuffer)
    case failed
  }

  init(
    logger: Logger, pool: NIOThreadPool, make: @escaping Maker = StillImageMaker(launcher: .ownProcess).jpeg
  ) {
    self.make = make
    self.logger = logger
    flight = SingleFlight(limit: Self.queueLimit, on: pool)
  }

  /// 404 without a picture track, 503 before the first key frame and where the thread does not follow, 500 for bits
  /// that are no picture.
  func answer(for stream: LiveStream, on eventLoop: any EventLoop) -> HTTPAnswer {
    let epoch = stream.epoch
    guard let initSegment = epoch.initSegment else { return .now(Self.notYet) }
    guard initSegment.tracks.contains(where: { $0.kind == .video }) else {
      return .now(Problem.notFound("The stream \"\(stream.name)\" has no picture.").response)
    }
    guard let keyFrame = epoch.window.newestKeyFrame else { return .now(Self.notYet) }
    let source = Source(stream: stream.name, epoch: epoch.id, segment: keyFrame.segment)
    if let known = pictures.withLock({ $0[stream.name] }), known.source == source {
      return .now(Self.response(known.outcome, source))
    }
    let made = flight.value(of: source, on: eventLoop) { self.picture(source, keyFrame) }
    guard let made else { return .now(Self.tooBusy) }
    return .later(made.map { Self.response($0, source) }.orElse(Self.tooBusy, after: Self.patience))
  }

  /// On a thread.
  private func picture(_ source: Source, _ keyFrame: LiveWindow.KeyFrame) -> Outcome {
    // Another may have made it between the look and the flight.
    if let known = pictures.withLock({ $0[source.stream] }), known.source == source { return known.outcome }
    let outcome: Outcome
    do {
      outcome = .made(try make(try keyFrame.range.read(), keyFrame.track))
    } catch {
      logger.of(source.stream).warning("no thumbnail of segment \(source.segment): \(error)")
      outcome = .failed
    }
    pictures.withLock { pictures in
      if pictures.count >= Self.pictureLimit { pictures = [:] }
      pictures[source.stream] = (source, outcome)
    }
    return outcome
  }
}

extension Thumbnails {
  private static let notYet = Problem(
    status: .serviceUnavailable, title: "Not yet", detail: "The stream has no key frame yet.",
    help: "Try again in a second.", headers: [HeaderField("Retry-After", "1")]
  ).response

  static let tooBusy = Problem(
    status: .serviceUnavailable, title: "Busy", detail: "Other pictures are being made.",
    help: "Try again in 2 seconds.", headers: [HeaderField("Retry-After", "2")]
  ).response

  private static func response(_ outcome: Outcome, _ source: Source) -> HTTPResponse {
    guard case .made(let jpeg) = outcome else {
      return Problem(
        status: .internalServerError, title: "No picture", detail: "The newest key frame cannot be decoded.",
        help: "The next segment may do; the log says why this one does not."
      ).response
    }
    return HTTPResponse(
      headers: [
        HeaderField("Content-Type", ContentType.jpeg.rawValue),
        HeaderField("Cache-Control", CachePolicy.livePlaylist.value),
      ], entityTag: "\"\(source.epoch)-\(source.segment)\"", body: .pieces([.bytes(jpeg)]))
  }
}
