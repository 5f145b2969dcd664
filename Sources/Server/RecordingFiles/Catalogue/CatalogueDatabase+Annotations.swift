internal import Glibc
internal import GRDB
internal import Publishing
internal import Storage

/// Annotations of recordings as rows of the catalogue. The files do not tell them.
extension Database {
  /// Empty annotations remove the row.
  func put(_ annotation: RecordingAnnotation, of key: RecordingKey) throws {
    guard !annotation.isEmpty else { return try removeAnnotation(of: key) }
    try cachedStatement(sql: "INSERT OR REPLACE INTO remark (stream, name, givenTitle, note) VALUES (?, ?, ?, ?)")
      .execute(arguments: [key.stream.description, key.name.stem, annotation.title, annotation.note])
  }

  func removeAnnotation(of key: RecordingKey) throws {
    try cachedStatement(sql: "DELETE FROM remark WHERE stream = ? AND name = ?")
      .execute(arguments: [key.stream.description, key.name.stem])
  }
}

extension CatalogueDatabase {
  /// A row of annotations, as it was read.
  typealias AnnotationRow = (stream: String, name: String, title: String?, note: String?)

  /// The annotations of a database that is about to be discarded; none where they cannot be read.
  static func annotations(in path: String) -> [AnnotationRow] {
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

  func put(_ rows: [AnnotationRow]) throws {
    try write { database in
      for row in rows {
        guard let stream = StreamName(row.stream), let name = RecordingName(finished: row.name + ".mp4") else {
          continue
        }
        try database.put(
          RecordingAnnotation(title: row.title, note: row.note), of: RecordingKey(stream: stream, name: name))
      }
    }
  }
}
