internal import Answers
internal import Base
internal import Delivery
internal import HTTP
internal import NIOCore
internal import NIOHTTP1
internal import Publishing
internal import Recording
internal import RecordingFiles

/// `/api/v1/recordings…` and `/api/v1/storage`: lists and changes recordings.
struct RecordingAPI {
  /// Nil if nothing is recorded.
  let library: RecordingLibrary?
  /// Whether an admin token is configured, which changes need.
  let isWritable: Bool
  let clock: SteadyClock

  /// `/api/v1/storage`.
  func storage(on eventLoop: any EventLoop) -> HTTPAnswer {
    guard let library else { return .now(Problem(.noStorage, "This server records nothing.").response) }
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

  /// Starts a stream's recording and responds with its new state.
  func start(_ request: APIRequest) -> HTTPAnswer {
    Self.reading(request) { order in act(request) { $0.start($1, order) } }
  }

  /// Stops or cancels a stream's recording and responds with its new state.
  func end(_ request: APIRequest) -> HTTPAnswer {
    act(request) { request[1] == "stop" ? $0.stop($1) : $0.cancel($1) }
  }

  /// Reads the body of a request that starts a recording: 400 if it is no JSON of that form, 422 for a value that cannot be.
  static func reading(_ request: APIRequest, _ start: (RecordingOrder) -> HTTPAnswer) -> HTTPAnswer {
    do {
      return start(try RecordingBody.order(in: request.http.body))
    } catch let error as ValueError {
      return .now(
        Problem(.unusableValue, "\(error.reason).", help: "\(error.advice).").response)
    } catch {
      return .now(
        Problem(
          .malformedBody, "The body is no JSON object of the form that this address takes.",
          help: #"Send nothing, or {"name": "…", "tracks": "all", "limits": {"duration": "1h", "bytes": "2GB"}}."#
        ).response)
    }
  }

  private func act(
    _ request: APIRequest, _ act: (RecordingLibrary, StreamName) -> RecordingAnswer
  ) -> HTTPAnswer {
    guard let library else { return .now(Self.recordsNothing) }
    guard let name = StreamName(request[0]) else {
      return .now(Problem(.invalidStreamName, "No stream can have that name.").response)
    }
    let action: APIAction
    do {
      action = try APIAction(request, telling: "/api/v1/streams/\(name)")
    } catch {
      return APIAction.refusal(error)
    }
    switch act(library, name) {
    case .done:
      return .later(
        library.settle(name, on: request.eventLoop, patience: action.patience).map {
          guard let state = describe(name) else { return Self.response(.notRecording) }
          return action.response(state, isReached: library.newest(name)?.isSettled ?? true)
        })
    case .refused(let refusal): return .now(Self.response(refusal))
    }
  }

  // MARK: Reading

  func list(_ request: APIRequest) -> HTTPAnswer {
    let query: CatalogueQuery
    do {
      query = try CatalogueQuery(request.http)
    } catch {
      return .now(
        Problem(.malformedQuery, "The query cannot be answered: \(error.reason).", help: error.advice).response)
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
      case .delete: catalogue.delete(key, by: request.who, now: clock.wallTime, on: loop)
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

  /// Sets the name and the note of a recording: 400 if the body is no JSON of that form, 422 for a text that cannot be.
  func annotate(_ request: APIRequest) -> HTTPAnswer {
    guard let library, let key = Self.key(request) else { return .now(Self.missing) }
    let base = request.http.base
    do {
      let annotation = try AnnotationBody.annotation(in: request.http.body)
      return .fromDisk(
        library.catalogue.setAnnotation(annotation, key, on: request.eventLoop).map { result in
          switch result {
          case .success(let entry): Self.answer(entry, library, base: base)
          case .failure(let refusal): Self.response(refusal)
          }
        }, on: request.eventLoop)
    } catch let error as ValueError {
      return .now(Problem(.unusableValue, "\(error.reason).", help: "\(error.advice).").response)
    } catch {
      return .now(
        Problem(
          .malformedBody, "The body is no JSON object of the form that this address takes.",
          help: #"Send {"name": "…", "note": "…"}."#
        ).response)
    }
  }

  private static func response(_ refusal: CatalogueRefusal) -> HTTPResponse {
    switch refusal {
    case .notFound: missing
    case .running: Problem(.recordingRuns, "The recording is being written.", help: "Stop it first.").response
    case .protected: Problem(.recordingProtected, "The recording is protected.", help: "Unprotect it first.").response
    case .notDeleted: Problem(.recordingNotDeleted, "It is not deleted.").response
    case .unfinished:
      Problem(.recordingUnfinished, "It is not finished yet; the server finishes it at its next start.").response
    case .disk(let detail): Problem(.diskFailed, detail, help: "Repair the disk, then retry.").response
    }
  }

  static let recordsNothing = Problem(
    .recordsNothing, "This server records nothing.", help: "Start it with --record."
  ).response

  static func response(_ refusal: RecordingRefusal) -> HTTPResponse {
    let kind: ProblemKind =
      switch refusal {
      case .notLive: .notLive
      case .alreadyRecording: .alreadyRecording
      case .notRecording: .notRecording
      case .neverRecorded: .neverRecorded
      case .noSuchTrack: .noSuchTrack
      case .isStopping: .sourceStopping
      case .isClosing: .recordingsClosing
      }
    return Problem(kind, refusal.description).response
  }

  private static let missing = Problem(
    .noSuchRecording, "There is no such recording.", help: "See /api/v1/recordings."
  ).response
}
