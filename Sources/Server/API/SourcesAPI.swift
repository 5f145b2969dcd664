internal import FMP4
internal import Ingest
internal import NIOCore
internal import NIOPosix

/// `/api/v1/sources` and `/api/v1/devices`: the server's own sources, whether they run or not, and what this machine has to
/// capture with. Both are for whoever has the admin token: they tell of the machine, and asking for devices opens them.
struct SourcesAPI {
  let sources: OwnSources
  let previews: SourcePreviews
  /// Nil where nothing is recorded.
  let recordings: SourceRecordings?
  let gate: AdminGate

  /// What may be done with a source, as the last segment of its address.
  private enum Action: String, CaseIterable {
    case start, preview, stop
  }

  /// `path` begins with `sources`.
  func respond(to request: HTTPRequest, _ path: ArraySlice<String>, on eventLoop: any EventLoop) -> HTTPAnswer {
    let path = Array(path.dropFirst())
    if path.count == 3, path[1] == "recording" { return record(request, source: path[0], path[2], eventLoop) }
    guard path.count <= 2 else { return .now(Self.missing) }
    if path.count == 2, path[1] != "preview.jpg" { return act(request, on: path[0], path[1], eventLoop) }
    guard request.isRead else { return .now(Problem.methodNotAllowed().response) }
    if let refusal = gate.refusal(of: request) { return .now(refusal.response) }
    guard let name = path.first else { return .now(.json(["sources": .array(sources.all.map(describe))])) }
    guard let source = source(name) else { return .now(Self.missing) }
    return path.count == 2 ? previews.answer(for: source, on: eventLoop) : .now(.json(describe(source)))
  }

  private func act(
    _ request: HTTPRequest, on name: String, _ action: String, _ eventLoop: any EventLoop
  ) -> HTTPAnswer {
    guard let action = Action(rawValue: action) else {
      let names = Action.allCases.map(\.rawValue).joined(separator: ", ")
      return .now(Problem.notFound("The API has no such address.", help: "Use one of \(names).").response)
    }
    guard request.method == .post else { return .now(Problem.methodNotAllowed(allow: "POST, OPTIONS").response) }
    if let refusal = gate.refusal(of: request) { return .now(refusal.response) }
    guard let source = source(name) else { return .now(Self.missing) }
    switch action {
    case .start:
      let refusal = eventLoop.makeFutureWithTask { await source.start() }
      return .later(refusal.map { $0.map { RecordingAPI.conflict($0.description) } ?? .json(describe(source)) })
    case .preview: source.preview()
    case .stop: source.stop()
    }
    return .now(.json(describe(source)))
  }

  /// `POST …/recording/start`, `…/stop` and `…/cancel`: the source as it is then.
  private func record(
    _ request: HTTPRequest, source name: String, _ action: String, _ eventLoop: any EventLoop
  ) -> HTTPAnswer {
    guard let action = SourceRecordings.Action(rawValue: action) else {
      return .now(Problem.notFound("The API has no such address.", help: "Use start, stop or cancel.").response)
    }
    guard request.method == .post else { return .now(Problem.methodNotAllowed(allow: "POST, OPTIONS").response) }
    if let refusal = gate.refusal(of: request) { return .now(refusal.response) }
    guard let source = source(name) else { return .now(Self.missing) }
    guard let recordings else { return .now(RecordingAPI.recordsNothing) }
    switch recordings.perform(action, on: source) {
    case .done:
      guard let recorder = source.recorder else { return .now(.json(describe(source))) }
      return .later(
        recorder.wait(until: \.isSettled, on: eventLoop, patience: RecordingAPI.patience)
          .map { _ in
            if action == .start, let problem = failure(of: source, recorder) { return problem }
            return .json(describe(source))
          })
    case .refused(let refusal): return .now(RecordingAPI.conflict(refusal.description))
    }
  }

  /// Why a recording that was begun has nothing: its source ended before anything came.
  private func failure(of source: OwnSource, _ recorder: Recorder) -> HTTPResponse? {
    guard case .stopped(let reason?) = source.activity, !recorder.isActive, case .idle = recorder.state else {
      return nil
    }
    return RecordingAPI.conflict("The source ended before anything was recorded: \(reason.words)")
  }

  /// `/api/v1/devices`: cameras and microphones as `weir devices --json` lists them. Drivers take their time, so it is asked
  /// for on a thread.
  func devices(_ request: HTTPRequest, on eventLoop: any EventLoop) -> HTTPAnswer {
    guard request.isRead else { return .now(Problem.methodNotAllowed().response) }
    if let refusal = gate.refusal(of: request) { return .now(refusal.response) }
    let listed = NIOSingletons.posixBlockingThreadPool.runIfActive(eventLoop: eventLoop) {
      HTTPResponse.json(
        Devices(cameras: CameraCatalogue.list(), microphones: MicrophoneCatalogue.list(), encoders: []).captureJSON)
    }
    return .later(listed)
  }

  private func source(_ name: String) -> OwnSource? { StreamName(name).flatMap { sources[$0] } }

  private func describe(_ source: OwnSource) -> JSON {
    let (state, reason): (String, JSON) =
      switch source.activity {
      case .live: ("live", .null)
      case .preview: ("preview", .null)
      case .stopping: ("stopping", .null)
      case .stopped(let reason): ("stopped", reason.map { .string($0.words) } ?? .null)
      }
    return [
      "name": .string(source.name.description), "kind": .string(source.kind), "state": .string(state),
      "reason": reason, "capture": source.status.map(\.json) ?? .null,
      "recording": source.recorder.map(describe) ?? .null,
    ]
  }

  /// Null where it ended before anything came.
  private func describe(_ recorder: Recorder) -> JSON {
    if case .idle = recorder.state, !recorder.isActive { return .null }
    return recorder.state.json(warning: recorder.warning)
  }

  private static let missing = Problem.notFound(
    "This server has no source of that name.", help: "See /api/v1/sources."
  ).response
}

extension EndReason {
  /// For people.
  fileprivate var words: String {
    switch self {
    case .finished: "It came to its end."
    case .failed(let reason), .connectionLost(let reason): reason
    case .replaced: "Another publisher took the name over."
    case .shutdown: "The server is stopping."
    }
  }
}
