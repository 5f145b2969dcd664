package import Base
internal import FMP4
package import Logging
internal import NIOCore
internal import NIOPosix
package import Publishing

/// Stores the epochs of live streams outside of this process, so that the next one can resume them. Callers never block: a
/// separate thread writes, and only the newest state of each stream.
package final class StreamStateStore: Sendable {
  private let folder: String
  private let clock: SteadyClock
  private let logger: Logger
  private let thread: any WorkThreads
  private let state = RankedMutex(.budget, State())
  /// A change that comes before a write begins is part of it.
  private let writes: SingleFlight<Int, Void>

  private struct State {
    /// Nil until `begin`.
    var database: StreamStateDatabase?
    var changes: [StreamName: @Sendable () -> StreamStateEntry?] = [:]
    /// The distances of key frames, also of streams that are over, and those of them that are not written yet.
    var groups = KnownGOPDurations()
    var newGroups = KnownGOPDurations()
    /// The last write failed. Logged once.
    var hasFailed = false
  }

  package init(
    folder: String, clock: SteadyClock, thread: any WorkThreads = WorkQueue("weir-streams"), logger: Logger
  ) {
    self.thread = thread
    writes = SingleFlight(limit: 1, on: thread, sharing: .untilBegun)
    self.folder = folder
    self.clock = clock
    self.logger = logger
  }

  /// Opens or creates the database. Returns the streams that were live or waiting when the last process ended, and whose patience
  /// by `settings` is not over; deletes the others. Before this call, nothing is written. Blocks on the disk; throws its errors.
  package func begin(settings: (StreamName) -> StreamSettings) throws -> [StreamName: StreamStateEntry] {
    let database = try StreamStateDatabase.open(folder: folder)
    // Without them streams begin as unknown ones do; that is no reason to keep no state.
    let groups = (try? database.groups()) ?? KnownGOPDurations()
    state.withLock { ($0.database, $0.groups) = (database, groups) }
    let now = clock.wallTime
    let all = try database.entries()
    let fresh = all.filter { name, entry in
      guard let patience = settings(name).patience(isHeld: entry.record.isHeld) else { return true }
      let grace = patience.nanoseconds &+ Int64(entry.record.targetDuration + 1) &* 1_000_000_000
      return now &- entry.writtenAt <= grace
    }
    let stale = all.keys.filter { fresh[$0] == nil }
    if !stale.isEmpty { try database.write(Dictionary(uniqueKeysWithValues: stale.map { ($0, nil) })) }
    return fresh
  }

  /// Stores a record. `contract` is what players learned from the settings; an epoch is only resumed when it is the same.
  /// `complete` is called on the writing thread: what takes time to make is added there. No lock of a window is thus held while a
  /// disk is slow.
  func note(
    _ record: EpochRecord, contract: String, of name: StreamName,
    complete: @escaping @Sendable (EpochRecord) -> EpochRecord = { $0 }
  ) {
    let entry = StreamStateEntry(record: record, contract: contract, writtenAt: clock.wallTime)
    if let group = record.longestGroup {
      state.withLock { state in
        guard state.database != nil, state.groups[name] != group else { return }
        state.groups.remember(group, of: name)
        state.newGroups.remember(group, of: name)
      }
    }
    change(name) {
      var entry = entry
      entry.record = complete(entry.record)
      return entry
    }
  }

  /// The distances of key frames that are known of names, also from earlier processes.
  package var groups: KnownGOPDurations { state.withLock { $0.groups } }

  /// Deletes the entry of an ended stream. The distance of its key frames stays known.
  func forget(_ name: StreamName) {
    change(name) { nil }
  }

  private func change(_ name: StreamName, _ entry: @escaping @Sendable () -> StreamStateEntry?) {
    let isKept = state.withLock { state in
      guard state.database != nil else { return false }
      state.changes.updateValue(entry, forKey: name)
      return true
    }
    if isKept { _ = writes.value(of: 0, on: MultiThreadedEventLoopGroup.singleton.any()) { self.write() } }
  }

  private func write() {
    let (database, changes, groups) = state.withLock { state in
      defer { (state.changes, state.newGroups) = ([:], KnownGOPDurations()) }
      return (state.database, state.changes, state.newGroups)
    }
    guard let database, !changes.isEmpty else { return }
    do {
      try database.write(changes.mapValues { $0() }, groups: groups.inOrder)
      state.withLock { $0.hasFailed = false }
    } catch {
      let isNew = state.withLock { state in
        defer { state.hasFailed = true }
        // Records come again with the next segment; these do not.
        var kept = groups
        for (name, group) in state.newGroups.inOrder { kept.remember(group, of: name) }
        state.newGroups = kept
        return !state.hasFailed
      }
      if isNew { logger.warning("cannot write the state of streams, so a restart would not resume them: \(error)") }
    }
  }

  /// Returns when all changes are written. Call once, at the end.
  package func close() async {
    guard let database = state.withLock({ $0.database }) else { return }
    // The thread runs jobs in order. Later changes are not written.
    try? await thread.runIfActive { [self] in
      state.withLock { $0.database = nil }
      database.close()
    }
  }
}

/// The stored state of a stream.
package struct StreamStateEntry: Sendable, Hashable {
  var record: EpochRecord
  /// What players learned from the stream's settings.
  var contract: String
  var writtenAt: WallTime
}
