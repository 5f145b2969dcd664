internal import Basics
internal import HTTP
internal import Ingest
internal import NIOCore
internal import NIOHTTP1

/// `/api/v1/recordings…` and `/api/v1/storage`: lists and changes recordings.
struct RecordingAPI {
  /// Nil if nothing is recorded.
  let library: RecordingLibrary?
  /// Whether an admin token is configured, which changes need.
  let isWritable: Bool
  let clock: SteadyClock

  /// `/api/v1/storage`.
  func storage(on eventLoop: any EventLoop) -> HTTPAnswer {
    guard let library else { return .now(Problem.notFound("This server records nothing.").response) }
    return .fromDisk(
      library.storage(on: eventLoop).map { storage in
        .json(
          StorageAnswer(
            freeBytes: storage.freeBytes, totalBytes: storage.totalBytes, recordedBytes: storage.recordedBytes,
            deletedBytes: storage.deletedBytes, keepFreeBytes: library.keepFree, undoSeconds: library.undoSeconds,
            writable: isWritable))
      }, on: eventLoop)
  }

  /// The newest recording of a stream; nil before its first one.
  func describe(_ name: StreamName) -> RecordingStateAnswer? { library?.newest(name).map { RecordingStateAnswer($0) } }

  /// Starts, stops or cancels a stream's recording and responds with its new state.
  func control(_ request: APIRequest) -> HTTPAnswer {
    guard let library else { return .now(Self.recordsNothing) }
    guard let name = StreamName(request[0]) else {
      return .now(Problem.notFound("No stream can have that name.").response)
    }
    let answer: RecordingAnswer =
      switch request[1] {
      case "start": library.start(name)
      case "stop": library.stop(name)
      default: library.cancel(name)
      }
    switch answer {
    case .done:
      return .later(
        library.settle(name, on: request.eventLoop, patience: Self.patience).map { .json(describe(name)) })
    case .refused(.notLive): return .now(Problem.notFound(RecordingRefusal.notLive.description).response)
    case .refused(let refusal): return .now(Self.conflict(refusal.description))
    }
  }

  /// How long a request waits for the recording to reach the requested state. A copy may be needed, the first key frame may be
  /// far away, or the disk may be busy. The response then gives the present state.
  static let patience = TimeAmount.seconds(2)

  // MARK: Reading

  func list(_ request: APIRequest) -> HTTPAnswer {
    let query: CatalogueQuery
    do {
      query = try CatalogueQuery(request.http)
    } catch {
      return .now(Problem.badRequest("The query cannot be answered: \(error.reason).", help: error.advice).response)
    }
    guard let library else {
      return .now(.json(RecordingsAnswer(CataloguePage(entries: [], next: nil, total: 0, isComplete: true))))
    }
    let (viewer, base) = (request.viewer, request.http.base)
    return .fromDisk(
      library.catalogue.list(query, on: request.eventLoop, showing: viewer.shows).map { page -> HTTPResponse in
        var page = page
        for index in page.entries.indices { page.entries[index].finishing = library.finishing(page.entries[index].key) }
        return .json(RecordingsAnswer(page, undoSeconds: library.undoSeconds, base: base))
      }, on: request.eventLoop)
  }

  func one(_ request: APIRequest) -> HTTPAnswer {
    guard let library, let key = Self.key(request) else { return .now(Self.missing) }
    let base = request.http.base
    return .fromDisk(
      library.catalogue.entry(key, on: request.eventLoop).map { entry in
        entry.map { Self.answer($0, library, base: base) } ?? Self.missing
      }, on: request.eventLoop)
  }

  /// With the time until which a deletion can be undone.
  private static func answer(_ entry: RecordingEntry, _ library: RecordingLibrary, base: String) -> HTTPResponse {
    var entry = entry
    entry.finishing = library.finishing(entry.key)
    return .json(EntryAnswer(entry, undoSeconds: library.undoSeconds, base: base))
  }

  private static func key(_ request: APIRequest) -> RecordingKey? {
    guard let stream = StreamName(request[0]), let name = RecordingName(finished: request[1]) else { return nil }
    return RecordingKey(stream: stream, name: name)
  }

  // MARK: Changing

  enum Change: Sendable {
    case delete, restore, protect, unprotect
  }

  func change(_ request: APIRequest, _ change: Change) -> HTTPAnswer {
    guard let library, let key = Self.key(request) else { return .now(Self.missing) }
    let (catalogue, loop, base) = (library.catalogue, request.eventLoop, request.http.base)
    let changed =
      switch change {
      case .delete: catalogue.delete(key, now: clock.wallTime, on: loop)
      case .restore: catalogue.restore(key, on: loop)
      case .protect: catalogue.setProtection(true, key, on: loop)
      case .unprotect: catalogue.setProtection(false, key, on: loop)
      }
    return .fromDisk(
      changed.map { result in
        switch result {
        case .success(let entry): Self.answer(entry, library, base: base)
        case .failure(let refusal): Self.response(refusal)
        }
      }, on: loop)
  }

  private static func response(_ refusal: CatalogueRefusal) -> HTTPResponse {
    switch refusal {
    case .notFound: missing
    case .running: conflict("The recording is being written.", help: "Stop it first.")
    case .protected: conflict("The recording is protected.", help: "Unprotect it first.")
    case .conflict(let detail): conflict(detail)
    case .disk(let detail):
      Problem(status: .internalServerError, title: "Disk", detail: detail, help: "Repair the disk, then retry.")
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
