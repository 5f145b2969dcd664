internal import Basics
internal import FMP4
internal import Ingest
internal import Logging

/// Stores the epochs of live streams outside of this process, so that the next one can resume them. Callers never block: a
/// separate thread writes, and only the newest state of each stream.
final class StreamStateStore: Sendable {
  private let folder: String
  private let clock: SteadyClock
  private let logger: Logger
  private let thread: any WorkThreads
  private let state = RankedMutex(.budget, State())

  private struct State {
    /// Nil until `begin`.
    var database: StreamStateDatabase?
    var changes: [StreamName: @Sendable () -> StreamStateEntry?] = [:]
    var isWriting = false
    /// The last write failed. Logged once.
    var hasFailed = false
  }

  init(
    folder: String, clock: SteadyClock, thread: any WorkThreads = WorkLane("weir-streams"), logger: Logger
  ) {
    self.thread = thread
    self.folder = folder
    self.clock = clock
    self.logger = logger
  }

  /// Opens or creates the database. Returns the streams that were live when the last process ended, at most `patience` ago;
  /// deletes the others. Before this call, nothing is written. Blocks on the disk; throws its errors.
  func begin(patience: MediaTime) throws -> [StreamName: StreamStateEntry] {
    let database = try StreamStateDatabase.open(folder: folder)
    state.withLock { $0.database = database }
    let now = clock.wallTime
    let all = try database.entries()
    let fresh = all.filter { _, entry in
      let grace = patience.nanoseconds &+ Int64(entry.record.targetDuration + 1) &* 1_000_000_000
      return now &- entry.writtenAt <= grace
    }
    let stale = all.keys.filter { fresh[$0] == nil }
    if !stale.isEmpty { try database.write(Dictionary(uniqueKeysWithValues: stale.map { ($0, nil) })) }
    return fresh
  }

  /// Stores a record. `promise` is what players learned from the settings; an epoch is only resumed when it is the same.
  /// `periods` is called on the writing thread; nil leaves those of the record. No lock of a window is thus held while a disk is slow.
  func note(
    _ record: EpochRecord, promise: String, of name: StreamName,
    periods: @escaping @Sendable () -> [KeptPeriod]? = { nil }
  ) {
    let entry = StreamStateEntry(record: record, promise: promise, writtenAt: clock.wallTime)
    change(name) {
      var entry = entry
      if let kept = periods() { entry.record.periods = kept }
      return entry
    }
  }

  /// Deletes the entry of an ended stream.
  func forget(_ name: StreamName) {
    change(name) { nil }
  }

  private func change(_ name: StreamName, _ entry: @escaping @Sendable () -> StreamStateEntry?) {
    let begins = state.withLock { state in
      guard state.database != nil else { return false }
      state.changes.updateValue(entry, forKey: name)
      defer { state.isWriting = true }
      return !state.isWriting
    }
    if begins { thread.submit { [self] _ in write() } }
  }

  private func write() {
    while true {
      let (database, changes) = state.withLock { state in
        defer { state.changes = [:] }
        state.isWriting = !state.changes.isEmpty
        return (state.database, state.changes)
      }
      guard let database, !changes.isEmpty else { return }
      do {
        try database.write(changes.mapValues { $0() })
        state.withLock { $0.hasFailed = false }
      } catch {
        let isNew = state.withLock { state in
          defer { state.hasFailed = true }
          return !state.hasFailed
        }
        if isNew { logger.warning("cannot write the state of streams, so a restart would not resume them: \(error)") }
      }
    }
  }

  /// Returns when all changes are written. Call once, at the end.
  func close() async {
    guard let database = state.withLock({ $0.database }) else { return }
    // The thread runs jobs in order. Later changes are not written.
    try? await thread.runIfActive { [self] in
      state.withLock { $0.database = nil }
      database.close()
    }
  }
}

/// The stored state of a stream.
struct StreamStateEntry: Sendable, Hashable {
  var record: EpochRecord
  /// What players learned from the stream's settings.
  var promise: String
  var writtenAt: WallTime
}
