internal import FMP4
internal import GRDB
internal import Publishing

/// Compares the catalogue with the folders, a few hundred files in each step. New files are read, and rows without a file are
/// removed. The catalogue may change between two steps.
struct CatalogueReading {
  /// On whose behalf it reads.
  enum Reader: Sendable {
    /// The server that records here: any recording that it did not begin itself is no longer running.
    case owner
    /// A command that only reads.
    case visitor
  }

  private let root: RecordingFolder
  private let reader: Reader
  private var streams: [StreamName]
  private var current: Current?
  /// Number of files examined.
  private(set) var filesSeen = 0

  private struct Current {
    var stream: StreamName
    var folder: RecordingFolder
    /// Folder of deleted recordings; nil if there is none.
    var deleted: RecordingFolder?
    var names: ArraySlice<String>
    var deletedNames: ArraySlice<String>
    /// Rows by stem; a row is removed when its file is found.
    var known: [String: RecordingEntry]
  }

  private static let filesInStep = 500

  init(folder: String, reader: Reader) throws(RecordingError) {
    root = try RecordingFolder.open(folder)
    self.reader = reader
    streams = try root.streams()
  }

  /// Begins the comparison: removes rows of streams without a folder.
  func forgetLostStreams(_ database: Database) throws {
    let there = Set(streams.map(\.description))
    for stream in try database.streams() where !there.contains(stream) { try database.removeAll(of: stream) }
  }

  /// One step. False when nothing is left to do. `running` are the recordings that this server is writing.
  mutating func step(_ database: Database, running: Set<RecordingKey>) throws -> Bool {
    if current == nil {
      guard let stream = streams.popLast() else { return false }
      current = try Self.begin(stream, in: root, database)
    }
    guard var now = current else { return true }
    for _ in 0..<Self.filesInStep {
      filesSeen += 1
      if let name = now.names.popFirst() {
        try visit(name, &now, database, running)
      } else if let name = now.deletedNames.popFirst() {
        try visitDeleted(name, &now, database)
      } else {
        try forget(now, database, running)
        current = nil
        return !streams.isEmpty
      }
    }
    current = now
    return true
  }

  private static func begin(
    _ stream: StreamName, in root: RecordingFolder, _ database: Database
  ) throws -> Current? {
    guard let folder = try? root.folder(of: stream, ifAbsent: .fail), let names = try? folder.names(ending: ".mp4")
    else { return nil }
    let deleted = try? folder.folder(named: RecordingFolder.deletedName, ifAbsent: .fail)
    // Rows that weir cannot have written are left out, so their files are read anew.
    let known = try database.entries(of: stream).map { ($0.name.stem, $0) }
    return Current(
      stream: stream, folder: folder, deleted: deleted, names: names[...],
      deletedNames: ((try? deleted?.names(ending: ".mp4")) ?? [])[...],
      known: Dictionary(known) { first, _ in first })
  }

  private func visit(
    _ file: String, _ now: inout Current, _ database: Database, _ running: Set<RecordingKey>
  ) throws {
    guard file.hasSuffix(".mp4") else { return }
    if file.hasSuffix(".part.mp4") { return try visitUnfinished(file, &now, database, running) }
    let stem = String(file.dropLast(4))
    guard let look = now.folder.look(at: file) else { return }
    let known = now.known.removeValue(forKey: stem)
    if let known, known.isPlayable, known.deletedAt == nil, known.bytes == look.bytes,
      known.modifiedAt == look.modifiedAt, known.isProtected == look.isReadOnly,
      known.reason?.hasPrefix(Self.unfinished) != true
    {
      return
    }
    guard let name = RecordingName(finished: file) else { return }
    let old = known == nil ? nil : try database.entry(RecordingKey(stream: now.stream, name: name))
    let contents = now.folder.contents(of: file)
    var entry = RecordingEntry(
      stream: now.stream, name: name, state: .completed, startedAt: old?.startedAt ?? name.startTime ?? .zero,
      seconds: contents.seconds, bytes: look.bytes, codecs: contents.codecs, isProtected: look.isReadOnly,
      modifiedAt: look.modifiedAt)
    if let metadata = contents.metadata {
      entry.take(metadata)
    } else if let old {
      (entry.gaps, entry.isSalvaged) = (old.gaps, old.isSalvaged)
      if old.state == .failed, old.isPlayable { (entry.state, entry.reason) = (.failed, old.reason) }
    }
    try database.put(entry)
  }

  /// An unfinished file left by an earlier run. Another process or the finisher may hold it.
  private func visitUnfinished(
    _ file: String, _ now: inout Current, _ database: Database, _ running: Set<RecordingKey>
  ) throws {
    guard let name = RecordingName(unfinished: file), let look = now.folder.look(at: file) else { return }
    let key = RecordingKey(stream: now.stream, name: name)
    let known = now.known.removeValue(forKey: name.stem)
    guard !running.contains(key) else { return }
    if let known, known.state == .failed || reader == .visitor { return }
    var entry =
      try database.entry(key)
      ?? RecordingEntry(
        stream: now.stream, name: name, state: .failed, startedAt: name.startTime ?? .zero, seconds: 0,
        bytes: look.bytes)
    entry.state = reader == .visitor ? .running : .failed
    entry.reason = reader == .visitor ? nil : Self.interrupted
    entry.isPlayable = false
    (entry.bytes, entry.modifiedAt) = (look.bytes, look.modifiedAt)
    try database.put(entry)
  }

  static let interrupted = "the server ended while it was being written"
  /// Prefix of the reason for a recording that is whole but not finished yet.
  static let unfinished = "it is not finished yet: "

  /// Why a recording ended early, from the reason in its row; nil if that reason describes the state of its file.
  static func failure(_ reason: String) -> String? {
    reason == interrupted || reason.hasPrefix(unfinished) ? nil : reason
  }

  private func visitDeleted(_ file: String, _ now: inout Current, _ database: Database) throws {
    guard let folder = now.deleted, let look = folder.look(at: file),
      let name = RecordingName(finished: file) ?? RecordingName(unfinished: file)
    else { return }
    if let known = now.known.removeValue(forKey: name.stem), known.deletedAt != nil { return }
    let isPlayable = file == name.finished
    let contents = folder.contents(of: file)
    var entry = RecordingEntry(
      stream: now.stream, name: name, state: isPlayable ? .completed : .failed,
      startedAt: name.startTime ?? .zero, seconds: contents.seconds, bytes: look.bytes, codecs: contents.codecs,
      reason: isPlayable ? nil : Self.interrupted, deletedAt: look.changedAt, isPlayable: isPlayable,
      modifiedAt: look.modifiedAt)
    if let metadata = contents.metadata { entry.take(metadata) }
    try database.put(entry)
  }

  /// Removes rows whose file was not listed and still does not exist.
  private func forget(_ now: Current, _ database: Database, _ running: Set<RecordingKey>) throws {
    for stem in now.known.keys {
      guard let name = RecordingName(finished: stem + ".mp4") else { continue }
      let key = RecordingKey(stream: now.stream, name: name)
      let files = [name.finished, name.unfinished]
      guard !running.contains(key), !files.contains(where: { now.folder.look(at: $0) != nil }),
        !files.contains(where: { now.deleted?.look(at: $0) != nil })
      else { continue }
      try database.remove(key)
    }
  }
}
