internal import Glibc
internal import Ingest
internal import Logging

/// Applies the rules of retention, a look every second. Lives on the catalogue's thread; it may wait for the disk.
struct RetentionKeeper {
  private let catalogue: RecordingCatalogue
  private let rules: Retention
  /// How long a deletion can be taken back, in nanoseconds.
  private let undoTime: Int64
  private let tell: @Sendable (RecordingEvent) -> Void
  private let freeBytes: @Sendable () -> Int64?

  private var lastFree: Int64?
  /// Bytes of removed files that have not become free, and until when they are waited for.
  private var owed: (bytes: Int64, until: Int64)?
  private var nextLook: Int64 = 0

  /// The least that is kept free above the floor, in bytes.
  static let leastHeadroom: Int64 = 16 << 20
  /// Seconds of writing at the newest rate that fit above the floor.
  private static let secondsOfHeadroom: Int64 = 3
  /// Less is not noticed to be missing.
  static let leastOwed: Int64 = 1 << 20
  /// How long removed files may keep their room before others are removed in their stead, in nanoseconds.
  private static let patience: Int64 = 60_000_000_000
  /// Sizes and ages change slowly: nanoseconds between two looks at them.
  private static let lookInterval: Int64 = 5_000_000_000
  /// The most that is looked at, and removed, at a time.
  private static let batch = 500

  init(
    catalogue: RecordingCatalogue, settings: RetentionSettings, keepFree: Int64,
    tell: @escaping @Sendable (RecordingEvent) -> Void
  ) {
    self.catalogue = catalogue
    rules = Retention(
      maximumAge: settings.maximumAge, maximumBytes: settings.maximumBytes,
      maximumBytesPerStream: settings.maximumBytesPerStream, keepFree: keepFree,
      whenFull: settings.whenFull)
    undoTime = settings.undoTime
    let folder = catalogue.folder
    freeBytes = settings.freeBytes ?? { try? RecordingFolder.open(folder).freeBytes }
    self.tell = tell
  }

  /// `now` in nanoseconds since 1970. To be called about once a second.
  mutating func look(now: Int64) throws {
    let database = try catalogue.database()
    for entry in try database.read({ try $0.deleted(before: now &- undoTime) }) {
      try remove(entry, "its deletion can no longer be taken back", database)
    }
    let free = freeBytes()
    noteReturned(free, now)
    var usage = Retention.Usage(free: free)
    usage.headroom = headroom(free)
    lastFree = free
    // What comes back by itself need not be made room for a second time.
    if let owed { usage.free = free.map { $0 &+ owed.bytes } }
    let isShort = rules.shortage(usage) > 0
    guard isShort || now >= nextLook else { return }
    nextLook = now &+ Self.lookInterval
    usage.byStream = try database.read { try $0.bytesByStream() }
    let victims = rules.victims(
      among: try candidates(usage, database), deleted: isShort ? try database.read { try $0.deleted(before: nil) } : [],
      usage: usage, now: now)
    for victim in victims.prefix(Self.batch) {
      try remove(victim.entry, victim.reason.rawValue, database)
    }
    // Some file systems give the space back with their next commit; the next look must not find it missing.
    if isShort, !victims.isEmpty, let root = try? RecordingFolder.open(catalogue.folder) { syncfs(root.descriptor) }
    if let free { noteOwed(victims.prefix(Self.batch), free: free, now) }
    if victims.count >= Self.batch { nextLook = now }
  }

  /// The oldest of all, and of each stream that has too much the oldest of its own.
  private func candidates(_ usage: Retention.Usage, _ database: CatalogueDatabase) throws -> [RecordingEntry] {
    try database.read { database in
      var candidates = try database.removable(of: nil, limit: Self.batch)
      let known = Set(candidates.map(\.key))
      if let most = rules.maximumBytesPerStream {
        for (stream, bytes) in usage.byStream where bytes > most {
          candidates += try database.removable(of: stream, limit: Self.batch).filter { !known.contains($0.key) }
        }
      }
      return candidates
    }
  }

  private func headroom(_ free: Int64?) -> Int64 {
    let rate = free.flatMap { free in lastFree.map { max(0, $0 &- free) } } ?? 0
    return max(Self.leastHeadroom, Self.secondsOfHeadroom &* rate)
  }

  /// Removing files is of no use while somebody has them open, or where they have other names elsewhere: it would go on
  /// until nothing is left.
  private mutating func noteOwed(_ victims: some Sequence<Retention.Victim>, free: Int64, _ now: Int64) {
    let removed = victims.filter { $0.reason == .freeSpace }.reduce(0) { $0 &+ Int64($1.entry.bytes) }
    guard removed >= Self.leastOwed else { return }
    var returned: Int64 = 0
    // Descriptors are closed by other threads.
    for _ in 0..<15 {
      returned = (freeBytes() ?? .max) &- free
      if returned >= removed / 2 { return }
      usleep(20_000)
    }
    owed = ((owed?.bytes ?? 0) &+ removed &- max(0, returned), now &+ Self.patience)
    catalogue.logger.warning(
      """
      \(removed / 1_000_000) MB of recordings were removed and the disk has not become emptier: somebody still reads \
      them, or they have other names; no more are removed for a minute
      """)
  }

  private mutating func noteReturned(_ free: Int64?, _ now: Int64) {
    guard var waiting = owed, let free else { return }
    waiting.bytes -= max(0, free &- (lastFree ?? free))
    owed = waiting.bytes >= Self.leastOwed && now < waiting.until ? waiting : nil
  }

  private func remove(_ entry: RecordingEntry, _ reason: String, _ database: CatalogueDatabase) throws {
    let folder = try RecordingFolder.open(catalogue.folder).folder(of: entry.stream, ifAbsent: .fail)
    if entry.deletedAt == nil {
      folder.erase(entry.key)
      catalogue.logger.of(entry.stream).notice("removed \(entry.file): \(reason)")
    } else {
      try? folder.folder(named: RecordingFolder.deletedName, ifAbsent: .fail).erase(entry.key)
      folder.removeThumbnail(of: entry.name)
      catalogue.logger.of(entry.stream).notice("removed for good \(entry.file): \(reason)")
    }
    try database.write { try $0.remove(entry.key) }
    tell(
      RecordingEvent(
        kind: .deleted(reason: reason),
        facts: RecordingFacts(
          stream: entry.stream, name: entry.name, startedAt: entry.startedAt, seconds: entry.seconds,
          bytes: UInt64(clamping: entry.bytes), codecs: entry.codecs, gaps: entry.gaps)))
  }
}
