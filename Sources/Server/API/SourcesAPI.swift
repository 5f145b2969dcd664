internal import Basics
internal import FMP4
internal import HTTP
internal import Ingest
internal import NIOCore
internal import NIOPosix

/// `/api/v1/sources` and `/api/v1/devices`: the local sources, running or not, and the capture devices of this machine. Both need
/// the admin token, because they describe the machine and listing devices opens them.
struct SourcesAPI {
  let sources: LocalSources
  let previews: SourcePreviews
  /// Nil if nothing is recorded.
  let recordings: SourceRecordings?
  /// A new film of a source.
  let film: @Sendable (StreamName) -> SourceFilm

  func list(_: APIRequest) -> HTTPAnswer { .now(.json(["sources": sources.all.map(SourceAnswer.init)])) }

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
    switch request[1] {
    case "start":
      let refusal = request.eventLoop.makeFutureWithTask { await source.start() }
      return .later(refusal.map { $0.map { RecordingAPI.conflict($0.description) } ?? .json(SourceAnswer(source)) })
    case "preview": source.preview()
    default: source.stop()
    }
    return .now(.json(SourceAnswer(source)))
  }

  /// Starts a source's recording and responds with the new state of the source.
  func record(_ request: APIRequest) -> HTTPAnswer {
    RecordingAPI.reading(request) { perform(.start($0), request) }
  }

  /// Stops or cancels a source's recording and responds with the new state of the source.
  func endRecording(_ request: APIRequest) -> HTTPAnswer { perform(request[1] == "stop" ? .stop : .cancel, request) }

  private func perform(_ action: SourceRecordings.Action, _ request: APIRequest) -> HTTPAnswer {
    guard let source = source(request) else { return .now(Self.missing) }
    guard let recordings else { return .now(RecordingAPI.recordsNothing) }
    switch recordings.perform(action, on: source) {
    case .done:
      guard let recorder = source.recorder else { return .now(.json(SourceAnswer(source))) }
      return .later(
        recorder.wait(until: \.isSettled, on: request.eventLoop, patience: RecordingAPI.patience)
          .map { _ in
            if case .start = action, let problem = failure(of: source, recorder) { return problem }
            return .json(SourceAnswer(source))
          })
    case .refused(let refusal): return .now(RecordingAPI.conflict(refusal.description))
    }
  }

  /// Why a new recording holds nothing: its source ended before any media came.
  private func failure(of source: LocalSource, _ recorder: Recorder) -> HTTPResponse? {
    guard case .stopped(let reason?) = source.activity, !recorder.isActive, case .idle = recorder.state else {
      return nil
    }
    return RecordingAPI.conflict("The source ended before anything was recorded: \(reason.words)")
  }

  /// `/api/v1/devices`: cameras and microphones, as `weir devices --json` lists them. Drivers are slow, so the list is made on a
  /// thread.
  func devices(_ request: APIRequest) -> HTTPAnswer {
    let listed = NIOSingletons.posixBlockingThreadPool.runIfActive(eventLoop: request.eventLoop) {
      HTTPResponse.json(
        text: DevicesAnswer(cameras: CameraCatalogue.list(), microphones: MicrophoneCatalogue.list()).json)
    }
    return .later(listed)
  }

  private func source(_ request: APIRequest) -> LocalSource? { StreamName(request[0]).flatMap { sources[$0] } }

  private static let missing = Problem.notFound(
    "This server has no source of that name.", help: "See /api/v1/sources."
  ).response
}

/// A local source.
struct SourceAnswer: Encodable {
  let name: String
  let kind: String
  let state: String
  let reason: String?
  let capture: CaptureAnswer?
  /// Null before its first recording, and if that ended before any media came.
  let recording: RecordingStateAnswer?

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
    recording = source.recorder.flatMap { recorder in
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
