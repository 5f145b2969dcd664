internal import GRDB
internal import Glibc
internal import Ingest
internal import Storage

/// The catalogue's table. Everything in it can be read from the files again, so a database that is of another version or
/// damaged is thrown away. Calls wait for the disk.
struct CatalogueDatabase: Sendable {
  private let writer: any DatabaseWriter

  /// Name of the file in the recordings folder: with a dot, since whatever has none there is a stream.
  static let fileName = ".catalogue.sqlite"
  /// Counts up with the table's shape.
  private static let version = 2

  enum Opening: Sendable {
    /// As an earlier run left it.
    case found
    /// There was none.
    case made
    /// It could not be used, for this reason, and was made anew.
    case replaced(String)
  }

  /// Opens or makes the database file of a recordings folder.
  static func open(folder: String) throws -> (CatalogueDatabase, Opening) {
    let path = "\(folder)/\(fileName)"
    let existed = access(path, F_OK) == 0
    do {
      let database = CatalogueDatabase(writer: try DatabasePool(path: path, configuration: configuration))
      if try database.isCurrent() { return (database, .found) }
      if !existed {
        try database.makeTable()
        return (database, .made)
      }
      try database.writer.close()
      return (try remake(path), .replaced("it is of another version"))
    } catch let error as DatabaseError where existed && error.isDamage {
      return (try remake(path), .replaced(error.message ?? "it is damaged"))
    }
  }

  /// One that lives in memory and goes with it, for where none can be kept on the disk.
  static func inMemory() throws -> CatalogueDatabase {
    let database = CatalogueDatabase(writer: try DatabaseQueue(configuration: configuration))
    try database.makeTable()
    return database
  }

  /// A copy in memory of the database in a folder, which is left as it is; empty where there is none that can be read.
  static func copy(folder: String) throws -> CatalogueDatabase {
    let path = "\(folder)/\(fileName)"
    var configuration = configuration
    configuration.readonly = true
    guard access(path, R_OK) == 0, let source = try? DatabaseQueue(path: path, configuration: configuration),
      (try? CatalogueDatabase(writer: source).isCurrent()) == true
    else { return try inMemory() }
    let copy = try DatabaseQueue()
    do { try source.backup(to: copy) } catch { return try inMemory() }
    return CatalogueDatabase(writer: copy)
  }

  private static func remake(_ path: String) throws -> CatalogueDatabase {
    for ending in ["", "-wal", "-shm", "-journal"] { unlink(path + ending) }
    let database = CatalogueDatabase(writer: try DatabasePool(path: path, configuration: configuration))
    try database.makeTable()
    return database
  }

  private static var configuration: Configuration {
    var configuration = Configuration()
    configuration.busyMode = .timeout(5)
    configuration.maximumReaderCount = 2
    // What a power failure takes from the catalogue, the files give back.
    configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous = NORMAL") }
    return configuration
  }

  // MARK: The table

  private func isCurrent() throws -> Bool {
    try writer.read { database in
      guard try Int.fetchOne(database, sql: "PRAGMA user_version") == Self.version else { return false }
      return try String.fetchOne(database, sql: "PRAGMA quick_check(1)") == "ok"
    } && schema() == Self.inMemory().schema()
  }

  /// How the table and its indexes were made. Another program's table need not have our keys.
  private func schema() throws -> [String?] {
    try writer.read { database in
      try Row.fetchAll(database, sql: "SELECT sql FROM sqlite_schema ORDER BY type, name").map { $0.value(0) }
    }
  }

  /// The indexes hold what is counted and summed, so that this need not look at the rows: with 100,000 of them counts
  /// take 0.4 instead of 3.4 ms, sums 7 instead of 34. SQLite takes a partial index for whole only if it has the column
  /// of its condition, too.
  private func makeTable() throws {
    try writer.write { database in
      try database.execute(
        sql: """
          CREATE TABLE recording (
            stream TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL, start INTEGER NOT NULL,
            seconds REAL NOT NULL, bytes INTEGER NOT NULL, codecs TEXT NOT NULL, gaps TEXT NOT NULL, reason TEXT,
            salvaged INTEGER NOT NULL, protected INTEGER NOT NULL, deletedAt INTEGER, playable INTEGER NOT NULL,
            modified INTEGER NOT NULL, PRIMARY KEY (stream, name)
          ) WITHOUT ROWID;
          CREATE INDEX byStart ON recording (start, name, stream, deletedAt) WHERE deletedAt IS NULL;
          CREATE INDEX byStream ON recording (stream, start, name, bytes, deletedAt) WHERE deletedAt IS NULL;
          CREATE INDEX byState ON recording (state, start, name, stream, deletedAt) WHERE deletedAt IS NULL;
          CREATE INDEX deleted ON recording (deletedAt) WHERE deletedAt IS NOT NULL;
          PRAGMA user_version = \(Self.version);
          """)
    }
  }

  /// Changes everything that `change` does, or nothing.
  func write<Value>(_ change: (Database) throws -> Value) throws -> Value {
    try writer.write { try change($0) }
  }

  func read<Value>(_ look: (Database) throws -> Value) throws -> Value {
    try writer.read { try look($0) }
  }

  /// Leaves one file: what is in the log goes into the database first.
  func close() {
    try? writer.writeWithoutTransaction { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
    try? writer.close()
  }
}
