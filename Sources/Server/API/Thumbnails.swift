internal import FMP4
internal import Ingest
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Synchronization

/// `/live/{stream}/thumbnail.jpg`: the newest key frame that starts a segment, as a JPEG. It is made when somebody
/// asks, at most once a segment whoever asks, by a worker for which one thread waits, one picture after the other for all
/// streams; a picture that cannot be made is not tried again either.
final class Thumbnails: Sendable {
  /// Makes a JPEG of a sync sample. Takes its time.
  typealias Maker = @Sendable (_ sample: ByteBuffer, _ track: TrackDescription) throws -> ByteBuffer

  private let make: Maker
  private let logger: Logger
  private let thread: NIOThreadPool
  private let state = Mutex(State())

  /// Streams whose pictures wait for the thread before others are told to come back.
  private static let queueLimit = 32
  /// Pictures that are kept; streams come and go, and their names come from publishers.
  private static let pictureLimit = 256
  /// How long a request waits for its picture.
  static let patience = TimeAmount.seconds(5)

  private struct State {
    /// The newest picture of each stream.
    var pictures: [StreamName: Picture] = [:]
    /// Pictures that the thread has not made yet.
    var queued = 0

    enum Step {
      case ready(Outcome)
      /// The thread is to be given the work.
      case make
      case wait
      case refuse
    }

    mutating func ask(for source: Source, of stream: StreamName, _ promise: EventLoopPromise<HTTPResponse>) -> Step {
      if let picture = pictures[stream], picture.source == source {
        guard case .making(let waiting) = picture.outcome else { return .ready(picture.outcome) }
        pictures[stream]?.outcome = .making(waiting: waiting + [promise])
        return .wait
      }
      guard queued < Thumbnails.queueLimit else { return .refuse }
      queued += 1
      if pictures.count >= Thumbnails.pictureLimit { pictures = pictures.filter { $0.value.isBeingMade } }
      // Those who wait for an older picture are given this one: it is newer.
      var waiting = [promise]
      if case .making(let others)? = pictures[stream]?.outcome { waiting += others }
      pictures[stream] = Picture(source: source, outcome: .making(waiting: waiting))
      return .make
    }

    /// Whoever waited for it.
    mutating func finish(_ source: Source, of stream: StreamName, _ outcome: Outcome)
      -> [EventLoopPromise<HTTPResponse>]
    {
      queued -= 1
      guard let picture = pictures[stream], picture.source == source, case .making(let waiting) = picture.outcome
      else { return [] }
      pictures[stream]?.outcome = outcome
      return waiting
    }
  }

  private struct Picture {
    var source: Source
    var outcome: Outcome

    var isBeingMade: Bool {
      if case .making = outcome { return true }
      return false
    }
  }

  /// Which picture it is.
  private struct Source: Hashable {
    var epoch: String
    var segment: Int
  }

  private enum Outcome {
    case making(waiting: [EventLoopPromise<HTTPResponse>])
    case made(ByteBuffer)
    case failed
  }

  init(logger: Logger, make: @escaping Maker = StillPictureMaker(launcher: .ownProcess).jpeg) {
    self.make = make
    self.logger = logger
    thread = NIOThreadPool(numberOfThreads: 1)
    thread.start()
  }

  /// 404 without a picture track, 503 before the first key frame and where the thread does not follow, 500 for bits
  /// that are no picture.
  func answer(for stream: LiveStream, on eventLoop: any EventLoop) -> HTTPAnswer {
    let epoch = stream.current.epoch
    guard let initSegment = epoch.initSegment else { return .now(Self.notYet) }
    guard initSegment.tracks.contains(where: { $0.kind == .video }) else {
      return .now(Problem.notFound("The stream \"\(stream.name)\" has no picture.").response)
    }
    guard let keyFrame = epoch.window.newestKeyFrame else { return .now(Self.notYet) }
    let source = Source(epoch: epoch.id, segment: keyFrame.segment)
    let promise = eventLoop.makePromise(of: HTTPResponse.self)
    let step = state.withLock { $0.ask(for: source, of: stream.name, promise) }
    switch step {
    case .ready(let outcome): promise.succeed(Self.response(outcome, source))
    case .refuse: promise.succeed(Self.tooBusy)
    case .make:
      let name = stream.name
      thread.submit { _ in self.produce(source, of: name, keyFrame) }
    case .wait: break
    }
    let timeout = eventLoop.scheduleTask(in: Self.patience) { promise.succeed(Self.tooBusy) }
    promise.futureResult.whenComplete { _ in timeout.cancel() }
    return .later(promise.futureResult)
  }

  // MARK: On the thread

  private func produce(_ source: Source, of stream: StreamName, _ keyFrame: LiveWindow.KeyFrame) {
    let outcome: Outcome
    do {
      outcome = .made(try make(try keyFrame.range.read(), keyFrame.track))
    } catch {
      logger.of(stream).warning("no thumbnail of segment \(source.segment): \(error)")
      outcome = .failed
    }
    let waiting = state.withLock { $0.finish(source, of: stream, outcome) }
    let response = Self.response(outcome, source)
    for promise in waiting { promise.succeed(response) }
  }
}

extension Thumbnails {
  private static let notYet = Problem(
    status: .serviceUnavailable, title: "Not yet", detail: "The stream has no key frame yet.",
    help: "Try again in a second.", headers: [HeaderField("Retry-After", "1")]
  ).response

  private static let tooBusy = Problem(
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
