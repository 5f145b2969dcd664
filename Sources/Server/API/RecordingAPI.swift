internal import Ingest
internal import NIOCore
internal import NIOHTTP1

/// `/api/v1/recordings…` and `/api/v1/storage`: what is recorded, and what may be done with it.
struct RecordingAPI {
  /// Nil where nothing is recorded.
  let library: RecordingLibrary?
  let gate: AdminGate
  let clock: SteadyClock

  /// What may be done with one recording, as the last segment of its address.
  private enum Action: String, CaseIterable {
    case restore, protect, unprotect
  }

  /// `path` begins behind `recordings`.
  func respond(to request: HTTPRequest, _ path: ArraySlice<String>, on eventLoop: any EventLoop) -> HTTPAnswer {
    let path = Array(path)
    switch path.count {
    case 0: return request.isRead ? list(request, on: eventLoop) : .now(Problem.methodNotAllowed().response)
    case 2:
      switch request.method {
      case .get, .head: return one(path, on: eventLoop)
      case .delete: return change(request, path, on: eventLoop, delete)
      default: return .now(Problem.methodNotAllowed(allow: "GET, HEAD, DELETE, OPTIONS").response)
      }
    case 3:
      guard let action = Action(rawValue: path[2]) else { return .now(Self.missing) }
      guard request.method == .post else { return .now(Problem.methodNotAllowed(allow: "POST, OPTIONS").response) }
      return change(request, path, on: eventLoop) { library, key, loop in
        switch action {
        case .restore: library.catalogue.restore(key, on: loop)
        case .protect: library.catalogue.setProtection(true, key, on: loop)
        case .unprotect: library.catalogue.setProtection(false, key, on: loop)
        }
      }
    default: return .now(Self.missing)
    }
  }

  /// `/api/v1/storage`.
  func storage(on eventLoop: any EventLoop) -> HTTPAnswer {
    guard let library else { return .now(Problem.notFound("This server records nothing.").response) }
    return .fromDisk(
      library.storage(on: eventLoop).map { storage in
        .json([
          "freeBytes": storage.freeBytes.map { .integer($0) } ?? .null,
          "totalBytes": storage.totalBytes.map { .integer($0) } ?? .null,
          "recordedBytes": .integer(storage.recordedBytes), "deletedBytes": .integer(storage.deletedBytes),
          "keepFreeBytes": .integer(library.keepFree), "undoSeconds": .integer(library.undoSeconds),
          "writable": .bool(gate.token != nil),
        ])
      }, on: eventLoop)
  }

  /// `POST /api/v1/streams/{stream}/recording/start`, `…/stop` and `…/cancel`: what the stream's recording then does.
  func control(
    _ request: HTTPRequest, stream: String, _ action: String, on eventLoop: any EventLoop
  ) -> HTTPAnswer {
    let act: (RecordingLibrary, StreamName) -> RecordingAnswer
    switch action {
    case "start": act = { $0.start($1) }
    case "stop": act = { $0.stop($1) }
    case "cancel": act = { $0.cancel($1) }
    default: return .now(Problem.notFound("The API has no such address.", help: "Use start, stop or cancel.").response)
    }
    guard request.method == .post else { return .now(Problem.methodNotAllowed(allow: "POST, OPTIONS").response) }
    if let refusal = gate.refusal(of: request) { return .now(refusal.response) }
    guard let library else { return .now(Self.recordsNothing) }
    guard let name = StreamName(stream) else {
      return .now(Problem.notFound("No stream can have that name.").response)
    }
    switch act(library, name) {
    case .done:
      return .later(
        library.settle(name, on: eventLoop, patience: Self.patience).map { .json(library.describe(name)) })
    case .refused(.notLive): return .now(Problem.notFound(RecordingRefusal.notLive.description).response)
    case .refused(let refusal): return .now(Self.conflict(refusal.description))
    }
  }

  /// How long an answer waits for a recording to become what it was asked to be: its file may need a copy, its first key
  /// frame may be far, or the disk busy. Then it tells how far it is.
  static let patience = TimeAmount.seconds(2)

  // MARK: Reading

  private func list(_ request: HTTPRequest, on eventLoop: any EventLoop) -> HTTPAnswer {
    let query: CatalogueQuery
    do {
      query = try CatalogueQuery(request)
    } catch {
      return .now(Problem.badRequest("The query cannot be answered: \(error.reason).", help: error.advice).response)
    }
    guard let library else {
      return .now(.json(CataloguePage(entries: [], next: nil, total: 0, isComplete: true).json))
    }
    return .fromDisk(
      library.catalogue.list(query, on: eventLoop).map { page -> HTTPResponse in
        var page = page
        for index in page.entries.indices { page.entries[index].finishing = library.finishing(page.entries[index].key) }
        return .json(page.json)
      }, on: eventLoop)
  }

  private func one(_ path: [String], on eventLoop: any EventLoop) -> HTTPAnswer {
    guard let library, let key = Self.key(path) else { return .now(Self.missing) }
    return .fromDisk(
      library.catalogue.entry(key, on: eventLoop).map { entry in
        entry.map { .json(describe($0)) } ?? Self.missing
      }, on: eventLoop)
  }

  /// With the time until which a deletion can be taken back.
  private func describe(_ entry: RecordingEntry) -> JSON {
    var entry = entry
    entry.finishing = library?.finishing(entry.key)
    guard case .object(var members) = entry.json, let library else { return entry.json }
    let end = entry.deletedAt.map { $0 &+ library.undoSeconds &* 1_000_000_000 }
    members.append(("restorableUntil", end.map { .string(UTCText(nanosecondsSince1970: $0).internet) } ?? .null))
    return .object(members)
  }

  private static func key(_ path: [String]) -> RecordingKey? {
    guard let stream = StreamName(path[0]), let name = RecordingName(finished: path[1]) else { return nil }
    return RecordingKey(stream: stream, name: name)
  }

  // MARK: Changing

  private typealias Change =
    (RecordingLibrary, RecordingKey, any EventLoop) -> EventLoopFuture<Result<RecordingEntry, CatalogueRefusal>>

  private func delete(
    _ library: RecordingLibrary, _ key: RecordingKey, _ eventLoop: any EventLoop
  ) -> EventLoopFuture<Result<RecordingEntry, CatalogueRefusal>> {
    library.catalogue.delete(key, now: clock.wallNanoseconds, on: eventLoop)
  }

  private func change(
    _ request: HTTPRequest, _ path: [String], on eventLoop: any EventLoop, _ change: Change
  ) -> HTTPAnswer {
    if let refusal = gate.refusal(of: request) { return .now(refusal.response) }
    guard let library, let key = Self.key(path) else { return .now(Self.missing) }
    return .fromDisk(
      change(library, key, eventLoop).map { result in
        switch result {
        case .success(let entry): .json(describe(entry))
        case .failure(let refusal): Self.response(refusal)
        }
      }, on: eventLoop)
  }

  private static func response(_ refusal: CatalogueRefusal) -> HTTPResponse {
    switch refusal {
    case .notFound: missing
    case .running: conflict("The recording is being written.", help: "Stop it first.")
    case .protected: conflict("The recording is protected.", help: "Unprotect it first.")
    case .conflict(let detail): conflict(detail)
    case .disk(let detail):
      Problem(status: .internalServerError, title: "Disk", detail: detail, help: "See to the disk, then try again.")
        .response
    }
  }

  static let recordsNothing = conflict("This server records nothing.", help: "Start it with --record.")

  static func conflict(_ detail: String, help: String? = nil) -> HTTPResponse {
    Problem(status: .conflict, title: "Not now", detail: detail, help: help).response
  }

  private static let missing = Problem.notFound("There is no such recording.", help: "See /api/v1/recordings.")
    .response
}
