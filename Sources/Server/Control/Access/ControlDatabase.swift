internal import FMP4
internal import Glibc
internal import GRDB
package import Publishing
internal import Storage

/// What was set over the API and outlives the process: keys, and settings of streams; and that publishers need a key. Calls block on the disk. A change is on
/// the disk when the call returns. A damaged file is an error and is never replaced: its keys would be lost without notice.
package struct ControlDatabase: Sendable {
  private let queue: DatabaseQueue

  /// Name of the file in the state folder.
  package static let fileName = "control.sqlite"
  /// The most keys.
  package static let keyLimit = 100_000

  package init(folder: String) throws {
    var configuration = Configuration()
    configuration.busyMode = .timeout(1)
    configuration.prepareDatabase { try $0.keepLog(.powerFailure) }
    queue = try DatabaseQueue(path: "\(folder)/\(Self.fileName)", configuration: configuration)
    try queue.write { database in
      try database.execute(
        sql: """
          CREATE TABLE IF NOT EXISTS key (
            name TEXT NOT NULL PRIMARY KEY, digest TEXT NOT NULL UNIQUE, madeAt INTEGER NOT NULL, endsAt INTEGER,
            publish TEXT NOT NULL, watch TEXT NOT NULL, record TEXT NOT NULL, scope TEXT
          ) WITHOUT ROWID;
          CREATE TABLE IF NOT EXISTS setting (stream TEXT NOT NULL PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
          CREATE TABLE IF NOT EXISTS mark (name TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID;
          """)
    }
  }

  /// The settings of streams in a state folder, also while a server uses it. Nil where there are none. Nothing is written.
  package static func settings(in folder: String) throws -> StreamTexts? {
    let path = "\(folder)/\(fileName)"
    guard access(path, F_OK) == 0 else { return nil }
    var configuration = Configuration()
    configuration.readonly = true
    configuration.busyMode = .timeout(1)
    return try settings(in: DatabaseQueue(path: path, configuration: configuration))
  }

  // MARK: Keys

  /// All keys. A row that this program cannot have written is an error.
  package func keys() throws -> [AccessKey] {
    try queue.read { database in
      try Row.fetchAll(database, sql: "SELECT * FROM key LIMIT \(Self.keyLimit)").map { row in
        guard let key = AccessKey(row) else { throw DatabaseError(resultCode: .SQLITE_CORRUPT) }
        return key
      }
    }
  }

  package func add(_ key: AccessKey) throws {
    try queue.write { database in
      func patterns(_ action: AccessAction) -> String {
        (key.grant.streams[action] ?? []).map(\.description).joined(separator: ",")
      }
      try database.execute(
        sql: "INSERT INTO key VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        arguments: [
          key.grant.name, key.secret.hex, key.madeAt, key.grant.ends, patterns(.publish), patterns(.watch),
          patterns(.record), key.grant.scope?.rawValue,
        ])
      if key.grant.streams[.publish] != nil { try Self.setClosed(true, in: database) }
    }
  }

  package func removeKey(_ name: String) throws {
    try queue.write { try $0.execute(sql: "DELETE FROM key WHERE name = ?", arguments: [name]) }
  }

  // MARK: Whether publishers need a key

  private static let closed = "publishersNeedKeys"

  /// Publishers needed a key: `Authorizer.staysClosed`.
  package func isClosed() throws -> Bool {
    try queue.read { try Row.fetchOne($0, sql: "SELECT 1 FROM mark WHERE name = ?", arguments: [Self.closed]) != nil }
  }

  package func setClosed(_ isClosed: Bool) throws { try queue.write { try Self.setClosed(isClosed, in: $0) } }

  private static func setClosed(_ isClosed: Bool, in database: Database) throws {
    try database.execute(
      sql: isClosed ? "INSERT OR IGNORE INTO mark VALUES (?)" : "DELETE FROM mark WHERE name = ?", arguments: [closed])
  }

  // MARK: Settings of streams

  /// What was set of streams.
  package struct StreamTexts: Sendable, Equatable {
    /// As text, by name.
    package var texts: [StreamName: String] = [:]
    /// What the rows that cannot be read have as a name.
    package var unreadable: [String] = []

    package init() {}
  }

  /// The settings of streams. A row that cannot be read leaves the others as they are.
  package func settings() throws -> StreamTexts { try Self.settings(in: queue) }

  private static func settings(in queue: DatabaseQueue) throws -> StreamTexts {
    try queue.read { database in
      var settings = StreamTexts()
      for row in try Row.fetchAll(database, sql: "SELECT * FROM setting") {
        let stream = row.value("stream") as String?
        guard let name = stream.flatMap({ StreamName($0) }), let text = row.value("text") as String? else {
          settings.unreadable.append(stream ?? "")
          continue
        }
        settings.texts[name] = text
      }
      return settings
    }
  }

  /// Replaces the settings of a stream; nil deletes them.
  package func setSettings(_ text: String?, of stream: StreamName) throws {
    try queue.write { database in
      if let text {
        try database.execute(
          sql: "INSERT OR REPLACE INTO setting VALUES (?, ?)", arguments: [stream.description, text])
      } else {
        try database.execute(sql: "DELETE FROM setting WHERE stream = ?", arguments: [stream.description])
      }
    }
  }

  /// Closes the database and leaves a single file.
  package func close() {
    try? queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
    try? queue.close()
  }
}

extension AccessKey {
  fileprivate init?(_ row: Row) {
    guard let name = row.value("name") as String?,
      let secret = (row.value("digest") as String?).flatMap(Secret.init(hex:)),
      let madeAt = row.value("madeAt") as WallTime?
    else { return nil }
    grant = AccessGrant(name: name)
    for action in AccessAction.allCases {
      guard let text = row.value(action.rawValue) as String? else { return nil }
      var patterns: [StreamPattern] = []
      for one in text.split(separator: ",") {
        guard let pattern = try? StreamPattern(parsing: String(one)) else { return nil }
        patterns.append(pattern)
      }
      if !patterns.isEmpty { grant.streams[action] = patterns }
    }
    if let text = row.value("scope") as String? {
      guard let scope = AdminScope(rawValue: text) else { return nil }
      grant.scope = scope
    }
    grant.ends = row.value("endsAt")
    self.secret = secret
    self.madeAt = madeAt
  }
}
