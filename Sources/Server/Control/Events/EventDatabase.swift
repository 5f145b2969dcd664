internal import FMP4
internal import GRDB
internal import Storage

/// The log of events in the state folder, in a file of its own: `streams.sqlite` may be thrown away, events may not. One thread
/// writes. A batch is durable when `write` returns, also over a power failure. Calls block on the disk.
struct EventDatabase: Sendable {
  private let queue: DatabaseQueue

  static let fileName = "events.sqlite"
  private static let version = 1

  /// What the last process left.
  struct Contents: Sendable {
    var events: [Event] = []
    /// Streams whose end was not told, with the last change of their state.
    var open: [String: OpenStream] = [:]
    /// Where each hook is.
    var places: [String: HookPlace] = [:]
  }

  /// What is written together.
  struct Batch: Sendable {
    var events: [Event] = []
    var places: [String: HookPlace] = [:]
    /// Keys that may be told again.
    var forgotten: [String] = []
    /// Older events go.
    var first: Int64?

    var isEmpty: Bool { events.isEmpty && places.isEmpty && forgotten.isEmpty }
  }

  /// Opens or creates it. `wasReplaced`: a damaged one was thrown away.
  static func open(folder: String) throws -> (database: EventDatabase, wasReplaced: Bool) {
    try DatabaseError.replacingDamaged("\(folder)/\(fileName)") { try EventDatabase(path: $0) }
  }

  private init(path: String) throws {
    // What viewers and files show after an event may survive a power failure, too.
    queue = try .owned(
      path: path, durability: .powerFailure, version: Self.version,
      schema: """
        DROP TABLE IF EXISTS event;
        DROP TABLE IF EXISTS open;
        DROP TABLE IF EXISTS hook;
        DROP TABLE IF EXISTS behind;
        CREATE TABLE event (
          id INTEGER PRIMARY KEY, kind TEXT NOT NULL, stream TEXT, who TEXT, at INTEGER NOT NULL, data TEXT NOT NULL,
          key TEXT, epoch TEXT, subject TEXT
        );
        CREATE INDEX eventByKey ON event (key) WHERE key IS NOT NULL;
        CREATE TABLE open (stream TEXT NOT NULL PRIMARY KEY, epoch TEXT NOT NULL, kind TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE hook (name TEXT NOT NULL PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID;
        """)
    // Streams that a hook is behind with (`HookPlace`). Earlier versions had none, and their log goes on.
    try queue.write {
      try $0.execute(
        sql:
          "CREATE TABLE IF NOT EXISTS behind (name TEXT NOT NULL PRIMARY KEY, streams TEXT NOT NULL) WITHOUT ROWID")
    }
  }

  /// The newest events, oldest first, and the rest. Rows that this program cannot have written are skipped.
  func contents(limit: Int) throws -> Contents {
    try queue.read { database in
      var contents = Contents()
      let rows = try Row.fetchAll(
        database, sql: "SELECT * FROM event ORDER BY id DESC LIMIT ?", arguments: [limit])
      contents.events = rows.reversed().compactMap(Event.init)
      for row in try Row.fetchAll(database, sql: "SELECT * FROM open") {
        guard let name = row.value("stream") as String?, let epoch = row.value("epoch") as String?,
          let kind = (row.value("kind") as String?).flatMap(EventKind.init)
        else { continue }
        contents.open[name] = OpenStream(epoch: epoch, kind: kind)
      }
      let hooks = "SELECT hook.name, position, streams FROM hook LEFT JOIN behind ON behind.name = hook.name"
      for row in try Row.fetchAll(database, sql: hooks) {
        guard let name = row.value("name") as String?, let position = row.value("position") as Int64? else { continue }
        contents.places[name] = HookPlace(through: position, text: (row.value("streams") as String?) ?? "")
      }
      return contents
    }
  }

  func write(_ batch: Batch) throws {
    try queue.write { database in
      for event in batch.events {
        try database.execute(
          sql: "INSERT OR REPLACE INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
          arguments: [
            event.id, event.kind.rawValue, event.stream, event.who, event.at.nanoseconds, event.data, event.key,
            event.epoch,
            event.subject,
          ])
        guard event.kind.isOfLife, let stream = event.stream else { continue }
        if event.kind == .streamEnded {
          try database.execute(sql: "DELETE FROM open WHERE stream = ?", arguments: [stream])
        } else {
          try database.execute(
            sql: "INSERT OR REPLACE INTO open VALUES (?, ?, ?)",
            arguments: [stream, event.epoch ?? "", event.kind.rawValue])
        }
      }
      for (name, place) in batch.places {
        try database.execute(sql: "INSERT OR REPLACE INTO hook VALUES (?, ?)", arguments: [name, place.through])
        try database.execute(
          sql: place.behind.isEmpty
            ? "DELETE FROM behind WHERE name = ?" : "INSERT OR REPLACE INTO behind VALUES (?, ?)",
          arguments: place.behind.isEmpty ? [name] : [name, place.text])
      }
      for key in batch.forgotten {
        try database.execute(sql: "UPDATE event SET key = NULL WHERE key = ?", arguments: [key])
      }
      if let first = batch.first { try database.execute(sql: "DELETE FROM event WHERE id < ?", arguments: [first]) }
    }
  }

  /// Closes the database and leaves a single file.
  func close() {
    try? queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
    try? queue.close()
  }
}

/// A stream whose end was not told yet.
package struct OpenStream: Sendable, Hashable {
  package var epoch: String
  /// The last change of its state.
  package var kind: EventKind
}

extension Event {
  fileprivate init?(_ row: Row) {
    guard let id = row.value("id") as Int64?, id > 0, let kind = (row.value("kind") as String?).flatMap(EventKind.init),
      let at = (row.value("at") as Int64?).map(WallTime.init(nanoseconds:)),
      let data = row.value("data") as String?, data.utf8.count <= Self.longestData
    else { return nil }
    self.init(
      id: id, kind: kind, stream: row.value("stream"), who: row.value("who"), at: at, data: data,
      key: row.value("key"), epoch: row.value("epoch"), subject: row.value("subject"))
  }
}
