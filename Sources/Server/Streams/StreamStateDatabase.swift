internal import FMP4
internal import GRDB
internal import Publishing
internal import Storage

/// The table of live streams for the next process, one row each, and that of the distances of key frames. The first matters
/// while a stream waits, the other for the first playlist of a name. A damaged database, or one of a version before 4, is
/// therefore deleted. Calls block on the disk.
struct StreamStateDatabase: Sendable {
  private let queue: DatabaseQueue

  /// Name of the file in the state folder.
  static let fileName = "streams.sqlite"
  /// Increased with each change of the schema.
  private static let version = 6

  static func open(folder: String) throws -> StreamStateDatabase {
    try DatabaseError.replacingDamaged("\(folder)/\(fileName)") { try StreamStateDatabase(path: $0) }.database
  }

  private init(path: String) throws {
    // After a power failure the streams need not be resumed. Two servers with one database would each resume the other's.
    queue = try .owned(
      path: path, durability: .processEnd, version: Self.version,
      schema: """
        DROP TABLE IF EXISTS stream;
        CREATE TABLE stream (
          name TEXT NOT NULL PRIMARY KEY, promise TEXT NOT NULL, writtenAt INTEGER NOT NULL, epoch TEXT NOT NULL,
          startedAt INTEGER NOT NULL, availabilityStart INTEGER NOT NULL, targetDuration INTEGER NOT NULL,
          partTicks INTEGER, partTimescale INTEGER, groupTicks INTEGER, groupTimescale INTEGER,
          promisesIndependence INTEGER NOT NULL, nextSequenceNumber INTEGER NOT NULL, nextPeriod INTEGER NOT NULL,
          initVersion INTEGER NOT NULL, breaks INTEGER NOT NULL, mediaEnd INTEGER NOT NULL, knownEnd INTEGER NOT NULL,
          clockOffset INTEGER NOT NULL, listedFrom INTEGER NOT NULL, periods TEXT NOT NULL,
          inits TEXT NOT NULL, isHeld INTEGER NOT NULL DEFAULT 0
        ) WITHOUT ROWID;
        DROP TABLE IF EXISTS distance;
        CREATE TABLE distance (name TEXT NOT NULL UNIQUE, ticks INTEGER NOT NULL, timescale INTEGER NOT NULL);
        """,
      changes: [
        4: """
        ALTER TABLE stream ADD COLUMN inits TEXT NOT NULL DEFAULT '';
        ALTER TABLE stream ADD COLUMN isHeld INTEGER NOT NULL DEFAULT 0;
        """,
        5: "ALTER TABLE stream ADD COLUMN isHeld INTEGER NOT NULL DEFAULT 0;",
      ])
  }

  /// All streams. Rows that this program cannot have written are skipped.
  func entries() throws -> [StreamName: StreamStateEntry] {
    try queue.read { database in
      var entries: [StreamName: StreamStateEntry] = [:]
      for row in try Row.fetchAll(database, sql: "SELECT * FROM stream") {
        guard let name = (row.value("name") as String?).flatMap({ StreamName($0) }), let entry = StreamStateEntry(row)
        else {
          continue
        }
        entries[name] = entry
      }
      return entries
    }
  }

  /// The distances of key frames, the oldest first. Rows that this program cannot have written are skipped.
  func groups() throws -> KnownGOPDurations {
    try queue.read { database in
      var groups = KnownGOPDurations()
      for row in try Row.fetchAll(database, sql: "SELECT name, ticks, timescale FROM distance ORDER BY rowid") {
        guard let name = (row.value(0) as String?).flatMap({ StreamName($0) }) else { continue }
        groups.remember(StreamStateEntry.length(row.value(1), row.value(2)), of: name)
      }
      return groups
    }
  }

  /// Replaces the entries of these names; nil deletes one. `groups` are distances of key frames; of the oldest names they are
  /// deleted.
  func write(_ changes: [StreamName: StreamStateEntry?], groups: [(name: StreamName, length: MediaTime)] = []) throws {
    try queue.write { database in
      for (name, length) in groups {
        try database.execute(
          sql: "INSERT OR REPLACE INTO distance VALUES (?, ?, ?)",
          arguments: [name.description, length.ticks, Int64(length.timescale)])
      }
      if !groups.isEmpty {
        try database.execute(
          sql: """
            DELETE FROM distance WHERE rowid < \
            (SELECT MIN(rowid) FROM (SELECT rowid FROM distance ORDER BY rowid DESC LIMIT ?))
            """,
          arguments: [KnownGOPDurations.limit])
      }
      for (name, entry) in changes {
        if let entry {
          try entry.put(name, in: database)
        } else {
          try database.execute(sql: "DELETE FROM stream WHERE name = ?", arguments: [name.description])
        }
      }
    }
  }

  /// Closes the database and leaves a single file.
  func close() {
    try? queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
    try? queue.close()
  }
}

extension StreamStateEntry {
  /// Valid ranges of counts and times.
  private static let counts = 0...(1 << 40)
  private static let moments = Int64(0)...(Int64.max / 4)

  init?(_ row: Row) {
    guard let contract = row.value("promise") as String?, let writtenAt = Self.moment(row.value("writtenAt")),
      let epoch = row.value("epoch") as String?, (1...32).contains(epoch.utf8.count),
      epoch.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) }),
      let startedAt = Self.moment(row.value("startedAt")), let available = Self.moment(row.value("availabilityStart")),
      let target = Self.count(row.value("targetDuration")), (1...3600).contains(target),
      let independence = row.value("promisesIndependence") as Int?,
      let number = Self.count(row.value("nextSequenceNumber")),
      let period = Self.count(row.value("nextPeriod")), let version = Self.count(row.value("initVersion")),
      let breaks = Self.count(row.value("breaks")), let end = Self.count(row.value("mediaEnd")),
      let known = Self.count(row.value("knownEnd")), known <= end, let offset = Self.moment(row.value("clockOffset")),
      let listedFrom = Self.moment(row.value("listedFrom")),
      let periods = (row.value("periods") as String?).flatMap(KeptPeriod.parse),
      let inits = (row.value("inits") as String?).flatMap(KeptInit.parse), let isHeld = row.value("isHeld") as Int?
    else { return nil }
    record = EpochRecord(
      epoch: epoch, startedAt: startedAt, availabilityStart: available, targetDuration: target,
      partTarget: Self.length(row.value("partTicks"), row.value("partTimescale")),
      longestGroup: Self.length(row.value("groupTicks"), row.value("groupTimescale")),
      promisesIndependence: independence != 0,
      nextSequenceNumber: max(1, number), nextPeriod: period, initVersion: version, breaks: breaks,
      isHeld: isHeld != 0,
      mediaEnd: Int64(end), knownEnd: Int64(known), clockOffset: offset, listedFrom: listedFrom, periods: periods,
      inits: inits)
    self.contract = contract
    self.writtenAt = writtenAt
  }

  private static func count(_ value: Int?) -> Int? { value.flatMap { counts.contains($0) ? $0 : nil } }

  private static func moment(_ value: WallTime?) -> WallTime? {
    value.flatMap { moments.contains($0.nanoseconds) ? $0 : nil }
  }

  fileprivate static func length(_ ticks: Int64?, _ timescale: Int64?) -> MediaTime? {
    guard let ticks, ticks > 0, let timescale = timescale.flatMap({ UInt32(exactly: $0) }), timescale > 0,
      ticks / Int64(timescale) < 1 << 20
    else { return nil }
    return MediaTime(ticks: ticks, timescale: timescale)
  }

  fileprivate func put(_ name: StreamName, in database: Database) throws {
    try database.execute(
      sql: "INSERT OR REPLACE INTO stream VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      arguments: [
        name.description, contract, writtenAt, record.epoch, record.startedAt, record.availabilityStart,
        record.targetDuration, record.partTarget?.ticks, record.partTarget.map { Int64($0.timescale) },
        record.longestGroup?.ticks, record.longestGroup.map { Int64($0.timescale) }, record.promisesIndependence,
        record.nextSequenceNumber, record.nextPeriod, record.initVersion, record.breaks, record.mediaEnd,
        record.knownEnd, record.clockOffset, record.listedFrom, KeptPeriod.text(of: record.periods),
        KeptInit.text(of: record.inits), record.isHeld,
      ])
  }
}
