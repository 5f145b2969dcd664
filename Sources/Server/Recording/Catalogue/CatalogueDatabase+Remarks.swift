internal import GRDB
internal import Glibc
internal import Ingest
internal import Storage

/// Remarks on recordings as rows of the catalogue. The files do not tell them.
extension Database {
  /// Empty remarks remove the row.
  func put(_ remarks: RecordingRemarks, of key: RecordingKey) throws {
    guard !remarks.isEmpty else { return try removeRemarks(of: key) }
    try cachedStatement(sql: "INSERT OR REPLACE INTO remark (stream, name, givenTitle, note) VALUES (?, ?, ?, ?)")
      .execute(arguments: [key.stream.description, key.name.stem, remarks.title, remarks.note])
  }

  func removeRemarks(of key: RecordingKey) throws {
    try cachedStatement(sql: "DELETE FROM remark WHERE stream = ? AND name = ?")
      .execute(arguments: [key.stream.description, key.name.stem])
  }
}

extension CatalogueDatabase {
  /// A row of remarks, as it was read.
  typealias RemarkRow = (stream: String, name: String, title: String?, note: String?)

  /// The remarks of a database that is about to be discarded; none where they cannot be read.
  static func remarks(in path: String) -> [RemarkRow] {
    guard access(path, R_OK) == 0, let source = try? DatabaseQueue(path: path) else { return [] }
    defer { try? source.close() }
    let rows = try? source.read { database in
      try Row.fetchAll(database, sql: "SELECT stream, name, givenTitle, note FROM remark")
    }
    return (rows ?? []).compactMap { row in
      guard let stream: String = row.value(0), let name: String = row.value(1) else { return nil }
      return (stream, name, row.value(2), row.value(3))
    }
  }

  func take(_ rows: [RemarkRow]) throws {
    try write { database in
      for row in rows {
        guard let stream = StreamName(row.stream), let name = RecordingName(finished: row.name + ".mp4") else {
          continue
        }
        try database.put(
          RecordingRemarks(title: row.title, note: row.note), of: RecordingKey(stream: stream, name: name))
      }
    }
  }
}
