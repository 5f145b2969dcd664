internal import Base

/// Lists the recordings of a folder without changing the disk. Uses a copy of the catalogue in memory and corrects it from the
/// files.
package struct RecordingListing {
  let folder: String
  let query: CatalogueQuery

  package init(folder: String, query: CatalogueQuery) {
    (self.folder, self.query) = (folder, query)
  }

  /// Path prefix of a recording's file.
  private var prefix: String { folder.hasSuffix("/") ? folder : "\(folder)/" }

  /// All recordings that the query finds. `progress` is called with the number of files examined.
  package func read(_ progress: (Int) -> Void = { _ in }) throws -> [RecordingEntry] {
    var reading = try CatalogueReading(folder: folder, reader: .visitor)
    let database = try CatalogueDatabase.copy(folder: folder)
    try database.write { try reading.forgetLostStreams($0) }
    while try database.write({ try reading.step($0, running: []) }) { progress(reading.filesSeen) }
    var query = query
    query.limit = CatalogueQuery.maximumLimit
    var entries: [RecordingEntry] = []
    while true {
      let (page, _) = try database.read { try $0.page(query) }
      entries += page
      guard page.count == query.limit, let last = page.last else { return entries }
      query.after = CatalogueCursor(last, by: query.order)
    }
  }

  /// One line for each recording: start, length, size, state, and its file as other commands take it.
  package func table(_ entries: [RecordingEntry]) -> String {
    if entries.isEmpty { return "no recordings in \(LogText.escaped(folder))\n" }
    let rows = entries.map { entry in
      [
        UTCText(entry.startedAt).internet, Self.duration(entry.seconds), Self.size(entry.bytes),
        Self.state(entry), LogText.escaped(prefix + entry.place),
      ]
    }
    let widths = (0..<4).map { column in rows.map { $0[column].count }.max() ?? 0 }
    return rows.map { row in
      (0..<4).map { column in
        let padding = String(repeating: " ", count: widths[column] - row[column].count)
        // Numbers are right-aligned.
        return column == 1 || column == 2 ? padding + row[column] : row[column] + padding
      }.joined(separator: "  ") + "  " + row[4] + "\n"
    }.joined()
  }

  private static func state(_ entry: RecordingEntry) -> String {
    var words = [entry.deletedAt == nil ? entry.state.rawValue : "deleted"]
    if entry.isSalvaged { words.append("salvaged") }
    if entry.isProtected { words.append("protected") }
    if !entry.gaps.isEmpty { words.append(entry.gaps.count == 1 ? "1 gap" : "\(entry.gaps.count) gaps") }
    return words.joined(separator: ", ")
  }

  /// `0:07`, `12:30`, `3:04:05`.
  private static func duration(_ seconds: Double) -> String {
    let whole = Int(min(max(seconds, 0), 1e9))
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let (hours, minutes) = (whole / 3600, whole / 60 % 60)
    return hours > 0 ? "\(hours):\(two(minutes)):\(two(whole % 60))" : "\(minutes):\(two(whole % 60))"
  }

  /// In powers of ten, as for the sizes of disks.
  private static func size(_ bytes: Int) -> String {
    var (value, unit) = (Double(bytes), "B")
    for next in ["kB", "MB", "GB", "TB"] where value >= 1000 { (value, unit) = (value / 1000, next) }
    let tenths = Int((value * 10).rounded())
    return unit == "B" ? "\(bytes) B" : "\(tenths / 10).\(tenths % 10) \(unit)"
  }
}
