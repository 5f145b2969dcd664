internal import FMP4
internal import GRDB
internal import Publishing
internal import Storage

/// Reads and writes recordings as rows of the catalogue.
extension Database {
  private static let chosen =
    "SELECT \(RecordingEntry.columns), givenTitle, note FROM recording LEFT JOIN remark USING (stream, name) WHERE "

  /// Statements are prepared once: preparing takes longer than finding a row.
  private func rows(_ condition: String, _ arguments: StatementArguments) throws -> [RecordingEntry] {
    let statement = try cachedStatement(sql: Self.chosen + condition)
    return try Row.fetchAll(statement, arguments: arguments).compactMap(RecordingEntry.init)
  }

  func entry(_ key: RecordingKey) throws -> RecordingEntry? {
    try rows("stream = ? AND name = ?", [key.stream.description, key.name.stem]).first
  }

  /// In any order.
  func entries(of stream: StreamName) throws -> [RecordingEntry] {
    try rows("stream = ?", [stream.description])
  }

  func put(_ entry: RecordingEntry) throws {
    try cachedStatement(
      sql: """
        INSERT OR REPLACE INTO recording (\(RecordingEntry.columns))
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """
    ).execute(arguments: [
      entry.stream.description, entry.name.stem, entry.state.rawValue, entry.startedAt, entry.seconds, entry.bytes,
      entry.codecs.joined(separator: ","), RecordingGap.text(entry.gaps), entry.reason, entry.isSalvaged,
      entry.isProtected, entry.deletedAt, entry.isPlayable, entry.modifiedAt, entry.title,
    ])
  }

  func remove(_ key: RecordingKey) throws {
    try cachedStatement(sql: "DELETE FROM recording WHERE stream = ? AND name = ?")
      .execute(arguments: [key.stream.description, key.name.stem])
  }

  func removeAll(of stream: String) throws {
    try execute(sql: "DELETE FROM recording WHERE stream = ?", arguments: [stream])
  }

  func streams() throws -> [String] {
    try Row.fetchAll(self, sql: "SELECT DISTINCT stream FROM recording").compactMap { $0.value(0) }
  }

  /// The page, newest first, and the total number, of the streams that `shows` chooses.
  func page(
    _ query: CatalogueQuery, showing shows: ((StreamName) -> Bool)? = nil
  ) throws -> (entries: [RecordingEntry], total: Int) {
    var conditions: [String] = []
    var arguments = StatementArguments()
    func add(_ condition: String, _ values: any DatabaseValueConvertible...) {
      conditions.append(condition)
      arguments += StatementArguments(values)
    }
    switch query.selection {
    case .kept: add("deletedAt IS NULL")
    case .state(let state): add("deletedAt IS NULL AND state = ?", state.rawValue)
    case .deleted: add("deletedAt IS NOT NULL")
    }
    if let stream = query.stream { add("stream = ?", stream.description) }
    if let shows {
      let shown = try streams().filter { StreamName($0).map(shows) ?? false }
      // One parameter, so that the statement is the same for any number of names, which need no escaping.
      add("stream IN (SELECT value FROM json_each(?))", "[\(shown.map { "\"\($0)\"" }.joined(separator: ","))]")
    }
    if let from = query.from { add("start >= ?", from) }
    if let to = query.to { add("start < ?", to) }
    let counted =
      "SELECT COUNT(*) FROM (SELECT 1 FROM recording WHERE \(conditions.joined(separator: " AND "))"
      + " LIMIT \(CatalogueQuery.countLimit))"
    let total = try Int.fetchOne(try cachedStatement(sql: counted), arguments: arguments) ?? 0
    let columns = query.order.columns + ["start", "name", "stream"]
    let (direction, comparison) = query.order == .oldest ? ("ASC", ">") : ("DESC", "<")
    if let after = query.after {
      let places = columns.map { _ in "?" }.joined(separator: ", ")
      conditions.append("(\(columns.joined(separator: ", "))) \(comparison) (\(places))")
      if !query.order.columns.isEmpty { arguments += [after.measure ?? 0] }
      arguments += [after.startedAt, after.key.name.stem, after.key.stream.description]
    }
    arguments += [query.limit]
    let order = columns.map { "\($0) \(direction)" }.joined(separator: ", ")
    let chosen = conditions.joined(separator: " AND ") + " ORDER BY \(order) LIMIT ?"
    return (try rows(chosen, arguments), total)
  }

  /// Recordings that retention may remove, oldest first, at most `limit`; of one stream, or of all.
  func removable(of stream: StreamName?, limit: Int) throws -> [RecordingEntry] {
    let conditions = "deletedAt IS NULL AND protected = 0 AND state <> 'running'"
    guard let stream else { return try rows(conditions + " ORDER BY start, name, stream LIMIT ?", [limit]) }
    return try rows(conditions + " AND stream = ? ORDER BY start, name LIMIT ?", [stream.description, limit])
  }

  /// Deleted recordings, those deleted first coming first; nil `before` means all.
  func deleted(before: WallTime?) throws -> [RecordingEntry] {
    try rows("deletedAt IS NOT NULL AND deletedAt < ? ORDER BY deletedAt", [before ?? .max])
  }

  /// When the deleted recording was deleted that was so first; nil if none is.
  func oldestDeletion() throws -> WallTime? {
    let statement = try cachedStatement(sql: "SELECT MIN(deletedAt) FROM recording WHERE deletedAt IS NOT NULL")
    return try Row.fetchAll(statement).first.flatMap { $0.value(0) }
  }

  /// Bytes of recordings that are not deleted, by stream.
  func bytesByStream() throws -> [StreamName: Int64] {
    let rows = try Row.fetchAll(
      self,
      sql: """
        SELECT stream, SUM(bytes) FROM recording
          WHERE deletedAt IS NULL AND bytes BETWEEN 0 AND \(RecordingEntry.mostBytes) GROUP BY stream
        """)
    return rows.reduce(into: [:]) { sums, row in
      if let stream = row.value(0).flatMap({ StreamName($0 as String) }) { sums[stream] = row.value(1) }
    }
  }
}

extension CatalogueQuery.Order {
  /// What is compared before the start.
  fileprivate var columns: [String] {
    switch self {
    case .newest, .oldest: []
    case .longest: ["seconds"]
    case .largest: ["bytes"]
    }
  }
}

extension RecordingEntry {
  /// In the order of reading and writing. A page has a thousand rows, and column names would be looked up in each.
  fileprivate static let columns =
    "stream, name, state, start, seconds, bytes, codecs, gaps, reason, salvaged, protected, deletedAt, playable, modified, title"

  /// Upper bound of a plausible file (1 PiB).
  fileprivate static let mostBytes = 1 << 50
  /// Upper bound of a plausible length (30,000 years).
  private static let mostSeconds = 1e12

  /// Nil for a row that this program cannot have written.
  init?(_ row: Row) {
    guard let stream = row.value(0).flatMap({ StreamName($0 as String) }), let stem: String = row.value(1),
      let name = RecordingName(finished: stem + ".mp4"), let state = row.value(2).flatMap({ State(rawValue: $0) }),
      let startedAt: WallTime = row.value(3), let seconds: Double = row.value(4),
      (0...Self.mostSeconds).contains(seconds),
      let bytes: Int = row.value(5), (0...Self.mostBytes).contains(bytes), let codecs: String = row.value(6),
      let gaps: String = row.value(7), let isSalvaged: Bool = row.value(9), let isProtected: Bool = row.value(10),
      let isPlayable: Bool = row.value(12), let modifiedAt: WallTime = row.value(13)
    else { return nil }
    self.init(
      stream: stream, name: name, state: state, startedAt: startedAt, seconds: seconds, bytes: bytes,
      codecs: codecs.split(separator: ",").map(String.init), gaps: RecordingGap.read(gaps), reason: row.value(8),
      title: row.value(14), isSalvaged: isSalvaged, isProtected: isProtected, deletedAt: row.value(11),
      isPlayable: isPlayable,
      modifiedAt: modifiedAt)
    annotation = RecordingAnnotation(title: row.value(15), note: row.value(16))
  }
}

extension RecordingGap {
  /// One gap in each line: seconds of the recording, seconds that are missing, and the reason.
  fileprivate static func text(_ gaps: [RecordingGap]) -> String {
    gaps.map { "\($0.at)\t\($0.seconds)\t\($0.reason.filter { $0 != "\t" && !$0.isNewline })" }.joined(separator: "\n")
  }

  fileprivate static func read(_ text: String) -> [RecordingGap] {
    text.split(separator: "\n").compactMap { line in
      let parts = line.split(separator: "\t", maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3, let at = Double(parts[0]), let seconds = Double(parts[1]) else { return nil }
      return RecordingGap(at: at, seconds: seconds, reason: String(parts[2]))
    }
  }
}
