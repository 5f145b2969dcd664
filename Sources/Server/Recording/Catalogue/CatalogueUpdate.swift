internal import GRDB
internal import Ingest

/// What an event means for the catalogue.
struct CatalogueUpdate {
  private let event: RecordingEvent
  private let root: RecordingFolder

  private var facts: RecordingFacts { event.facts }
  private var key: RecordingKey { RecordingKey(stream: facts.stream, name: facts.name) }

  init(_ event: RecordingEvent, root: RecordingFolder) {
    self.event = event
    self.root = root
  }

  func apply(to database: Database) throws {
    switch event.kind {
    case .cancelled, .deleted: try database.remove(key)
    case .started, .progressed, .stopped: try database.put(try entry(.running, in: database))
    case .stored:
      // What failed stays so, also when a movie is made of it later.
      let hasFailed = try database.entry(key)?.state == .failed
      try database.put(try finished(hasFailed ? .failed : .completed, in: database))
    case .salvaged:
      // The row may know what its file could not be told any more.
      let known = try database.entry(key).flatMap { $0.state == .failed ? $0.reason : nil }
      let failure = facts.failure ?? (known == CatalogueReading.interrupted ? nil : known)
      var entry = try finished(failure == nil ? .completed : .failed, in: database)
      entry.isSalvaged = true
      entry.reason = failure
      try database.put(entry)
    case .failed(let reason):
      var entry = try finished(.failed, in: database)
      entry.reason = reason
      try database.put(entry)
    }
  }

  /// With what the facts tell, and what was known besides.
  private func entry(_ state: RecordingEntry.State, in database: Database) throws -> RecordingEntry {
    var entry =
      try database.entry(key)
      ?? RecordingEntry(
        stream: facts.stream, name: facts.name, state: state, startedAt: facts.startedAt, seconds: 0, bytes: 0)
    entry.state = state
    entry.startedAt = facts.startedAt
    entry.seconds = facts.seconds
    entry.bytes = Int(clamping: facts.bytes)
    if !facts.codecs.isEmpty { entry.codecs = facts.codecs }
    if !facts.gaps.isEmpty { entry.gaps = facts.gaps }
    entry.isPlayable = false
    entry.deletedAt = nil
    return entry
  }

  /// The same with what the file itself tells, so that the next start finds nothing to put right.
  private func finished(_ state: RecordingEntry.State, in database: Database) throws -> RecordingEntry {
    var entry = try entry(state, in: database)
    guard let folder = try? root.folder(of: facts.stream, ifAbsent: .fail) else { return entry }
    guard let look = folder.look(at: facts.name.finished) else {
      if let look = folder.look(at: facts.name.unfinished) {
        (entry.bytes, entry.modifiedAt) = (look.bytes, look.modifiedAt)
      }
      return entry
    }
    entry.isPlayable = true
    (entry.bytes, entry.modifiedAt, entry.isProtected) = (look.bytes, look.modifiedAt, look.isReadOnly)
    if entry.codecs.isEmpty || entry.seconds == 0 {
      let contents = folder.contents(of: facts.name.finished)
      (entry.seconds, entry.codecs) = (contents.seconds, contents.codecs)
    }
    return entry
  }
}
