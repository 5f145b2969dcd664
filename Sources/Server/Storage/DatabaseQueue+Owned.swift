package import GRDB

extension DatabaseQueue {
  /// What a write survives when it returns.
  package enum Durability: String {
    /// The end of the process. What waits in the page cache is lost with the power.
    case processEnd = "NORMAL"
    /// A power failure, too.
    case powerFailure = "FULL"
  }

  /// Opens or creates a database that one process uses at a time. Calls block on the disk.
  ///
  /// - Parameters:
  ///   - version: the number of the schema. The tables of another version are thrown away.
  ///   - schema: SQL that drops the tables of other versions, and creates those of this one.
  ///   - changes: SQL that changes the tables of an earlier version, by its number, into those of this one: their rows are kept.
  package static func owned(
    path: String, durability: Durability, version: Int, schema: String, changes: [Int: String] = [:]
  ) throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.busyMode = .timeout(1)
    configuration.prepareDatabase { database in
      // First of all: then what the log of writes contains is found without a file that processes share.
      try database.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
      try database.keepLog(durability)
    }
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    try queue.write { database in
      let found = try Int.fetchOne(database, sql: "PRAGMA user_version")
      guard found != version else { return }
      try database.execute(sql: (found.flatMap { changes[$0] } ?? schema) + "\nPRAGMA user_version = \(version);")
    }
    return queue
  }
}

extension Database {
  /// Writes go to a log beside the file (WAL). GRDB's own mode of that name is not used: it lowers `synchronous` to NORMAL after
  /// `prepareDatabase`, so that no write would survive a power failure, and makes a table at each start.
  package func keepLog(_ durability: DatabaseQueue.Durability) throws {
    guard try String.fetchOne(self, sql: "PRAGMA journal_mode = WAL") == "wal" else {
      throw DatabaseError(message: "a log of writes cannot be kept beside the database")
    }
    try execute(sql: "PRAGMA synchronous = \(durability.rawValue)")
  }
}
