internal import GRDB

/// Applies an event to the catalogue.
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
    case .cancelled, .deleted:
      try database.remove(key)
      try database.removeAnnotation(of: key)
    case .started, .progressed, .stopped:
      if facts.visibility == .whileWritten { try database.put(try entry(.running, in: database)) }
    // A recording that ended early is failed, even if a movie is made of it later.
    case .stored: try database.put(try finished(facts.failure, in: database))
    case .salvaged:
      // The row may know a failure that could not be written into the file.
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

  /// The entry with the event's facts, and otherwise as it was known.
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
    if let title = facts.title { entry.title = title }
    entry.isPlayable = false
    entry.deletedAt = nil
    return entry
  }

  /// The entry with what the file itself tells. The next start then finds nothing to correct, even after a loss of the catalogue.
  /// `failure` says why the recording ended early.
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
