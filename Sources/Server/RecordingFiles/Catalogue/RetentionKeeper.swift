package import FMP4
internal import Glibc
internal import Logging
internal import Streams

/// Applies the retention rules: once a second while anything is live, and when `due` otherwise. Runs on the catalogue's thread; it may wait for the disk.
package struct RetentionKeeper {
  private let catalogue: RecordingCatalogue
  private var rules: Retention
  /// Nanoseconds for which a deletion can be undone.
  private var undoTime: Int64
  private let tell: @Sendable (RecordingEvent) -> Void
  private let announce: @Sendable (RecordingProspect, RecordingFacts) -> Void
  private let freeBytes: @Sendable () -> Int64?
  private let pause: @Sendable (UInt32) -> Void

  /// Free bytes at the end of the last look.
  private var lastFree: Int64?
  /// When that look began.
  private var lastFreeAt = WallTime.zero
  /// Bytes of removed files that have not become free yet, the time until which they are expected, and the number of
  /// removals in a row that freed nothing.
  private var owed: (bytes: Int64, until: WallTime, failures: Int)?
  private var nextLook = WallTime.zero
  /// When a recording becomes older than it may be; nil if none will.
  private var nextOld: WallTime?
  /// When a rule may demand something without anything being recorded, deleted or written; nil if that cannot be.
  package private(set) var due: WallTime?

  /// The least space to keep free above `keepFree`, in bytes.
  package static let leastHeadroom: Int64 = 16 << 20
  /// Seconds of writing at the present rate for which that space must suffice.
  private static let secondsOfHeadroom: Int64 = 3
  /// Smaller amounts are ignored, in bytes.
  static let leastOwed: Int64 = 1 << 20
  /// Nanoseconds to wait for the space of removed files before more files are removed.
  private static let patience: Int64 = 60_000_000_000
  /// Removals in a row that may free nothing before no other is tried. A single one may be a file that somebody reads.
  private static let mostFailures = 2
  /// Readings of the free space after a removal, and microseconds between two.
  private static let readings = 150, betweenReadings: UInt32 = 20_000
  /// Nanoseconds between two checks of sizes and ages, which change slowly.
  private static let lookInterval: Int64 = 5_000_000_000
  /// Upper bound of the recordings examined and removed at a time.
  private static let batch = 500

  package init(
    catalogue: RecordingCatalogue, settings: RetentionSettings, keepFree: Int64,
    announce: @escaping @Sendable (RecordingProspect, RecordingFacts) -> Void = { _, _ in },
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
    pause = settings.pause
    (self.tell, self.announce) = (tell, announce)
  }

  /// Follows other rules from the next look on.
  package mutating func follow(_ settings: RetentionSettings) {
    rules = Retention(
      maximumAge: settings.maximumAge, maximumBytes: settings.maximumBytes,
      maximumBytesPerStream: settings.maximumBytesPerStream, keepFree: rules.keepFree, whenFull: settings.whenFull)
    undoTime = settings.undoTime
    nextLook = .zero
  }

  /// To be called about once a second.
  package mutating func look(now: WallTime) throws {
    let database = try catalogue.database()
    var deletion = try database.read { try $0.oldestDeletion() }
    if let oldest = deletion, oldest < now &- undoTime {
      for entry in try database.read({ try $0.deleted(before: now &- undoTime) }) {
        try remove(entry, "its deletion can no longer be taken back", database)
      }
      deletion = try database.read { try $0.oldestDeletion() }
    }
    defer { due = [deletion.map { $0 &+ undoTime &+ 1 }, nextOld].compactMap(\.self).min() }
    let free = freeBytes()
    noteReturned(free, now)
    var usage = Retention.Usage(free: free)
    usage.headroom = headroom(free, now)
    (lastFree, lastFreeAt) = (free, now)
    // Space that will become free without further action counts as free.
    if let owed { usage.free = owed.failures < Self.mostFailures ? free.map { $0 &+ owed.bytes } : nil }
    let isShort = rules.shortage(usage) > 0
    guard isShort || now >= nextLook else { return }
    nextLook = now &+ Self.lookInterval
    usage.byStream = try database.read { try $0.bytesByStream() }
    let candidates = try candidates(usage, database)
    let victims = rules.victims(
      among: candidates, deleted: isShort ? try database.read { try $0.deleted(before: nil) } : [],
      usage: usage, now: now)
    // Where the last removal freed nothing, a single one is tried. Rules of age and size are not affected.
    var tries = (owed?.failures ?? 0) > 0 ? 1 : Self.batch
    let removed = victims.prefix(Self.batch).filter { victim in
      guard victim.reason == .freeSpace else { return true }
      tries -= 1
      return tries >= 0
    }
    for victim in removed {
      try remove(victim.entry, victim.reason.rawValue, database)
    }
    // Some file systems free the space with their next commit. It must be free before the next check.
    if isShort, !removed.isEmpty, let root = try? RecordingFolder.open(catalogue.folder) { syncfs(root.descriptor) }
    if let free { noteOwed(removed, free: free, now) }
    if victims.count >= Self.batch { nextLook = now }
    // After a removal there may be more to remove.
    nextOld =
      victims.isEmpty
      ? rules.maximumAge.flatMap { age in candidates.map { $0.endedAt &+ age &+ 1 }.min() } : now
  }

  /// The oldest recordings of all, and the oldest of each stream that is over its limit.
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

  /// Looks come a second apart while anything is live, and rarely otherwise.
  private func headroom(_ free: Int64?, _ now: WallTime) -> Int64 {
    let written = free.flatMap { free in lastFree.map { max(0, $0 &- free) } } ?? 0
    let rate = written / max(1, (now &- lastFreeAt) / 1_000_000_000)
    return max(Self.leastHeadroom, Self.secondsOfHeadroom &* rate)
  }

  /// Notes removed bytes that do not become free. Removing a file frees nothing while it is open, or while it has other links.
  /// Without this, files would be removed until none is left.
  private mutating func noteOwed(_ victims: some Sequence<Retention.Victim>, free: Int64, _ now: WallTime) {
    let removed = victims.filter { $0.reason == .freeSpace }.reduce(0) { $0 &+ Int64($1.entry.bytes) }
    guard removed >= Self.leastOwed else { return }
    var (returned, least) = (Int64(0), free)
    // Other threads close the descriptors. On a busy machine that takes seconds, and the headroom lasts for three. The
    // longest rise counts: what is written before a file is closed would hide it.
    for _ in 0..<Self.readings {
      guard let reading = freeBytes() else { return }
      least = min(least, reading)
      returned = max(returned, reading &- least)
      lastFree = reading
      if returned >= removed / 2 {
        owed?.failures = 0
        return
      }
      pause(Self.betweenReadings)
    }
    let failures = (owed?.failures ?? 0) + 1
    owed = ((owed?.bytes ?? 0) &+ removed &- returned, now &+ Self.patience, failures)
    catalogue.logger.warning(
      """
      \(removed / 1_000_000) MB of recordings were removed but the disk has not gained free space: some are \
      still open, or have other names; \(failures < Self.mostFailures ? "one more is tried" : "no more are removed for a minute")
      """)
  }

  private mutating func noteReturned(_ free: Int64?, _ now: WallTime) {
    guard var waiting = owed, let free else { return }
    waiting.bytes -= max(0, free &- (lastFree ?? free))
    owed = waiting.bytes >= Self.leastOwed && now < waiting.until ? waiting : nil
  }

  private func remove(_ entry: RecordingEntry, _ reason: String, _ database: CatalogueDatabase) throws {
    let folder = try RecordingFolder.open(catalogue.folder).folder(of: entry.stream, ifAbsent: .fail)
    announce(.removed(reason: reason), entry.facts)
    if entry.deletedAt == nil {
      folder.erase(entry.key)
      catalogue.logger.of(entry.stream).notice("removed \(entry.file): \(reason)")
    } else {
      try? folder.folder(named: RecordingFolder.deletedName, ifAbsent: .fail).erase(entry.key)
      folder.removeThumbnail(of: entry.name)
      catalogue.logger.of(entry.stream).notice("removed for good \(entry.file): \(reason)")
    }
    try database.write { try $0.remove(entry.key) }
    tell(RecordingEvent(kind: .deleted(reason: reason), facts: entry.facts))
  }
}
