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
    case .started, .progressed, .stopped:
      if facts.disclosure == .whileWritten { try database.put(try entry(.running, in: database)) }
    // What ended before it was to is failed, also when a movie is made of it later.
    case .stored: try database.put(try finished(facts.failure, in: database))
    case .salvaged:
      // The row may know what its file could not be told any more.
      let known = try database.entry(key).flatMap { $0.state == .failed ? $0.reason : nil }
      var entry = try finished(facts.failure ?? known.flatMap(CatalogueReading.failure), in: database)
      entry.isSalvaged = true
      try database.put(entry)
    case .failed(let reason):
      var entry = try finished(facts.failure, in: database)
      if facts.failure == nil { (entry.state, entry.reason) = (.failed, CatalogueReading.unfinished + reason) }
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

  /// The same with what the file itself tells, so that the next start finds nothing to put right, also when the catalogue
  /// is lost. `failure` is why it ended before it was to.
  private func finished(_ failure: String?, in database: Database) throws -> RecordingEntry {
    var entry = try entry(failure == nil ? .completed : .failed, in: database)
    entry.reason = failure
    guard let folder = try? root.folder(of: facts.stream, ifAbsent: .fail) else { return entry }
    guard let look = folder.look(at: facts.name.finished) else {
      if let look = folder.look(at: facts.name.unfinished) {
        (entry.bytes, entry.modifiedAt) = (look.bytes, look.modifiedAt)
      }
      return entry
    }
    entry.isPlayable = true
    (entry.bytes, entry.modifiedAt, entry.isProtected) = (look.bytes, look.modifiedAt, look.isReadOnly)
    let contents = folder.contents(of: facts.name.finished)
    if !contents.codecs.isEmpty { (entry.seconds, entry.codecs) = (contents.seconds, contents.codecs) }
    if let metadata = contents.metadata {
      entry.take(metadata)
      if entry.reason == nil, let failure { (entry.state, entry.reason) = (.failed, failure) }
    }
    return entry
  }
}
