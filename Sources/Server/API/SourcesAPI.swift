internal import Answers
internal import Base
internal import Delivery
internal import FMP4
internal import HTTP
internal import Local
package import LocalSources
internal import NIOCore
internal import NIOPosix
package import Publishing
internal import Recording

/// `/api/v1/sources` and `/api/v1/devices`: the local sources, running or not, and the capture devices of this machine. Both need
/// the admin token, because they describe the machine and listing devices opens them.
package struct SourcesAPI {
  let sources: SourceRegistry
  let previews: SourcePreviews
  /// Nil if nothing is recorded.
  let recordings: SourceRecordings?
  /// A new film of a source.
  let film: @Sendable (StreamName) -> SourceFilm

  package init(
    sources: SourceRegistry, previews: SourcePreviews, recordings: SourceRecordings?,
    film: @escaping @Sendable (StreamName) -> SourceFilm
  ) {
    (self.sources, self.previews, self.recordings, self.film) = (sources, previews, recordings, film)
  }

  func list(_: APIRequest) -> HTTPAnswer { .now(.json(SourcesAnswer(sources: sources.all.map(SourceAnswer.init)))) }

  func one(_ request: APIRequest) -> HTTPAnswer {
    guard let source = source(request) else { return .now(Self.missing) }
    return .now(.json(SourceAnswer(source)))
  }

  func preview(_ request: APIRequest) -> HTTPAnswer {
    guard let source = source(request) else { return .now(Self.missing) }
    return previews.answer(for: source, on: request.eventLoop)
  }

  /// The source as an endless MP4, on air or off. 503 before its tracks are known, and if it does not run.
  func film(_ request: APIRequest) -> HTTPAnswer {
    guard let source = source(request) else { return .now(Self.missing) }
    guard !source.tracks.isEmpty else { return .now(SourcePreviews.notYet) }
    return .now(
      HTTPResponse(
        headers: [
          HeaderField("Content-Type", ContentType.mp4.rawValue), HeaderField("Cache-Control", CachePolicy.never.value),
        ], body: .live(SourceFilmBody(source: source) { [film] in film(source.name) })))
  }

  func act(_ request: APIRequest) -> HTTPAnswer {
    guard let source = source(request) else { return .now(Self.missing) }
    let action: APIAction
    do {
      action = try Self.action(request, source)
    } catch {
      return APIAction.refusal(error)
    }
    let word = request[1]
    let respond = { @Sendable (isReached: Bool) in action.response(SourceAnswer(source), isReached: isReached) }
    switch word {
    case "start":
      let refusal = request.eventLoop.makeFutureWithTask { await source.start() }
      return .later(refusal.map { $0.map { Problem(.sourceNotAdmitted, $0.description).response } ?? respond(true) })
    case "preview":
      source.preview()
      return action.when({ if case .preview = source.activity { true } else { false } }, respond)
    default:
      source.stop()
      return action.when({ if case .stopped = source.activity { true } else { false } }, respond)
    }
  }

  private static func action(_ request: APIRequest, _ source: LocalSource) throws(ValueError) -> APIAction {
    try APIAction(request, telling: "/api/v1/sources/\(source.name)")
  }

  /// Starts a source's recording and responds with the new state of the source.
  func record(_ request: APIRequest) -> HTTPAnswer {
    RecordingAPI.reading(request) { perform(.start($0), request) }
  }

  /// Stops or cancels a source's recording and responds with the new state of the source.
  func endRecording(_ request: APIRequest) -> HTTPAnswer { perform(request[1] == "stop" ? .stop : .cancel, request) }

  private func perform(_ asked: SourceRecordings.Action, _ request: APIRequest) -> HTTPAnswer {
    guard let source = source(request) else { return .now(Self.missing) }
    guard let recordings else { return .now(RecordingAPI.recordsNothing) }
    let action: APIAction
    do {
      action = try Self.action(request, source)
    } catch {
      return APIAction.refusal(error)
    }
    switch recordings.perform(asked, on: source) {
    case .done:
      guard let recording = source.recording else { return .now(.json(SourceAnswer(source))) }
      let recorder = recording.recorder
      return .later(
        recorder.wait(until: \.isSettled, on: request.eventLoop, patience: action.patience)
          .map { _ in
            if case .start = asked, let problem = Self.failure(of: recording) { return problem }
            return action.response(SourceAnswer(source), isReached: recorder.isSettled)
          })
    case .refused(let refusal): return .now(RecordingAPI.response(refusal))
    }
  }

  /// Why a new recording holds nothing: its source ended before any media came.
  private static func failure(of recording: SourceRecording) -> HTTPResponse? {
    guard let reason = recording.endReason, !recording.isActive, case .idle = recording.recorder.state else {
      return nil
    }
    return Problem(.sourceEnded, "The source ended before anything was recorded: \(reason.words)").response
  }

  /// `/api/v1/devices`: cameras and microphones, as `weir devices --json` lists them. Drivers are slow, so the list is made on a
  /// thread.
  func devices(_ request: APIRequest) -> HTTPAnswer {
    let listed = NIOSingletons.posixBlockingThreadPool.runIfActive(eventLoop: request.eventLoop) {
      HTTPResponse.json(DevicesAnswer(cameras: CameraCatalogue.list(), microphones: MicrophoneCatalogue.list()))
    }
    return .later(listed)
  }

  private func source(_ request: APIRequest) -> LocalSource? { StreamName(request[0]).flatMap { sources[$0] } }

  private static let missing = Problem(
    .noSuchSource, "This server has no source of that name.", help: "See /api/v1/sources."
  ).response
}

/// `/api/v1/sources`
struct SourcesAnswer: APIObject {
  let sources: [SourceAnswer]
}

/// A local source.
struct SourceAnswer: APIObject {
  let name: String
  let kind: String
  let state: String
  let reason: String?
  let capture: CaptureAnswer?
  let reception: ReceptionAnswer?
  /// Null before its first recording, and if that ended before any media came.
  let recording: RecordingStateAnswer?

  static let notes: [String: FieldNote] = [
    "kind": .words(["test", "file", "capture", "udp"], "What it is made of."),
    "state": .words(
      ["live", "preview", "stopping", "stopped"], "preview: its devices are open, and nothing is published."),
    "reason": "Why it stopped by itself.",
    "recording": "Null before its first one.",
  ]

  init(_ source: LocalSource) {
    (name, kind) = (source.name.description, source.kind)
    (state, reason) =
      switch source.activity {
      case .live: ("live", nil)
      case .preview: ("preview", nil)
      case .stopping: ("stopping", nil)
      case .stopped(let reason): ("stopped", reason?.words)
      }
    capture = source.status.map(CaptureAnswer.init)
    reception = source.reception.map(ReceptionAnswer.init)
    recording = (source.recording?.recorder).flatMap { recorder in
      if case .idle = recorder.state, !recorder.isActive { nil } else { RecordingStateAnswer(recorder) }
    }
  }
}

extension EndReason {
  /// A sentence for the API's response.
  fileprivate var words: String {
    switch self {
    case .finished: "It ended."
    case .failed(let reason), .connectionLost(let reason): reason
    case .replaced: "Another publisher took the name over."
    case .shutdown: "The server is stopping."
    }
  }
}
