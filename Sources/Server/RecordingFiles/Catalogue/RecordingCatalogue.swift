package import Base
internal import GRDB
package import Logging
package import NIOCore
internal import NIOPosix
package import Publishing
internal import Storage
internal import Synchronization

/// The list of recordings, in a database beside the files. The files are authoritative. The catalogue follows recordings by their
/// events, compares itself with the folders at start, and is rebuilt after a loss. One thread changes it, so events, deletions
/// and retention run one after another; two more threads read. Recording and serving media wait for none of them.
package final class RecordingCatalogue: RecordingObserver, Sendable {
  let folder: String
  let logger: Logger
  /// Called before a client gets the response to a change.
  let announce: @Sendable (RecordingProspect, RecordingFacts) -> Void
  package let thread: any WorkThreads
  private let readers: any WorkThreads
  private let state = Mutex(State())
  /// The folders have been read to the end.
  private let isComplete = Latch()

  private struct State {
    /// Nil until the thread has opened it.
    var database: CatalogueDatabase?
    var events: [RecordingEvent] = []
    /// Events wait for the thread, or are being applied.
    var isApplying = false
    /// Recordings that this server is writing.
    var running: Set<RecordingKey> = []
    /// The last change could not be written.
    var isBehind = false
    /// The catalogue is closed.
    var isClosed = false
  }

  package init(
    folder: String, announce: @escaping @Sendable (RecordingProspect, RecordingFacts) -> Void = { _, _ in },
    thread: any WorkThreads = WorkQueue("weir-catalogue"),
    readers: any WorkThreads = WorkQueue("weir-lists", threads: 2),
    logger: Logger
  ) {
    self.thread = thread
    self.readers = readers
    self.folder = folder
    self.announce = announce
    self.logger = logger
    thread.submit { pool in
      if case .active = pool { self.openDatabase() }
    }
  }

  // MARK: Opening

  /// Compares the catalogue with the folders. Returns when that is done, or after `patience`; the comparison then continues in
  /// the background.
  package func compare(patience: Duration = .milliseconds(500)) async {
    startComparing()
    _ = await isComplete.wait(patience: patience)
  }

  private func openDatabase() {
    do {
      let (database, opening) = try CatalogueDatabase.open(folder: folder)
      if case .replaced(let reason) = opening {
        logger.warning("the catalogue of recordings is rebuilt from the files: \(reason)")
      }
      state.withLock { $0.database = database }
    } catch {
      logger.warning("the catalogue of recordings is kept in memory, and read from the files at each start: \(error)")
      let database = try? CatalogueDatabase.inMemory()
      state.withLock { $0.database = database }
    }
  }

  private func startComparing() {
    thread.submit { pool in
      guard case .active = pool else { return }
      do {
        let reading = try CatalogueReading(folder: self.folder, reader: .owner)
        try self.database().write { try reading.forgetLostStreams($0) }
        self.goOnComparing(reading)
      } catch {
        self.failed("compare it with the files", error)
      }
    }
  }

  /// Runs one step at a time, so that events and requests run between steps.
  private func goOnComparing(_ reading: CatalogueReading) {
    var reading = reading
    do {
      let running = state.withLock { $0.running }
      let isMore = try database().write { try reading.step($0, running: running) }
      guard isMore else { return isComplete.set() }
    } catch {
      return failed("compare it with the files", error)
    }
    let next = reading
    thread.submit { pool in
      if case .active = pool { self.goOnComparing(next) }
    }
  }

  // MARK: Following recordings

  package func receive(_ event: RecordingEvent) {
    let mustSubmit = state.withLock { state in
      // Only the newest progress of a recording is kept, so the number of recordings bounds the waiting events.
      if case .progressed = event.kind,
        let index = state.events.lastIndex(where: {
          $0.facts.name == event.facts.name && $0.facts.stream == event.facts.stream
        }),
        case .progressed = state.events[index].kind
      {
        state.events[index] = event
      } else {
        state.events.append(event)
      }
      defer { state.isApplying = true }
      return !state.isApplying
    }
    guard mustSubmit else { return }
    thread.submit { pool in
      if case .active = pool { self.applyEvents() }
    }
  }

  private func applyEvents() {
    while true {
      let events = state.withLock { state in
        defer { state.events = [] }
        if state.events.isEmpty { state.isApplying = false }
        for event in state.events { state.running.follow(event) }
        return state.events
      }
      if events.isEmpty { return }
      do {
        let folder = try RecordingFolder.open(folder)
        try database().write { database in
          for event in events { try CatalogueUpdate(event, root: folder).apply(to: database) }
        }
      } catch {
        failed("follow a recording", error)
      }
    }
  }

  // MARK: Reading and changing

  /// Runs concurrently with everything else, unless the data it reads is about to change.
  package func read<Value: Sendable>(
    on eventLoop: any EventLoop, _ look: @escaping @Sendable (CatalogueDatabase) throws -> Value
  ) -> EventLoopFuture<Value> {
    let isSettled = state.withLock { !$0.isApplying && $0.database != nil }
    return (isSettled ? readers : thread).runIfActive(eventLoop: eventLoop) { try look(self.database()) }
  }

  /// Runs on the thread, after everything submitted before.
  func change<Value: Sendable>(
    on eventLoop: any EventLoop, _ change: @escaping @Sendable (CatalogueDatabase) throws -> Value
  ) -> EventLoopFuture<Value> {
    thread.runIfActive(eventLoop: eventLoop) { try change(self.database()) }
  }

  /// - Parameter shows: the streams whose recordings are listed; nil for all.
  package func list(
    _ query: CatalogueQuery, on eventLoop: any EventLoop, showing shows: (@Sendable (StreamName) -> Bool)? = nil
  ) -> EventLoopFuture<CataloguePage> {
    read(on: eventLoop) { database in
      let isComplete = self.isComplete.isSet
      var wider = query
      wider.limit = query.limit + 1
      var (entries, total) = try database.read { try $0.page(wider, showing: shows) }
      let isMore = entries.count > query.limit
      if isMore { entries.removeLast() }
      return CataloguePage(
        entries: entries, next: isMore ? entries.last.map { CatalogueCursor($0, by: query.order) } : nil, total: total,
        isComplete: isComplete)
    }
  }

  /// Nil if there is none.
  package func entry(_ key: RecordingKey, on eventLoop: any EventLoop) -> EventLoopFuture<RecordingEntry?> {
    read(on: eventLoop) { try $0.read { try $0.entry(key) } }
  }

  func database() throws(RecordingError) -> CatalogueDatabase {
    guard let database = state.withLock({ $0.database }) else {
      throw RecordingError("there is no catalogue of the recordings in \(LogText.escaped(folder))")
    }
    return database
  }

  // MARK: Failures

  /// Logs the first failure. Missing changes are read from the files as soon as the database can be written again.
  package func failed(_ action: String, _ error: any Error) {
    let isNew = state.withLock { state in
      defer { state.isBehind = true }
      return !state.isBehind
    }
    if isNew { logger.warning("the catalogue of recordings cannot \(action): \(error)") }
    guard (error as? DatabaseError)?.isDamage == true else { return }
    state.withLock { state in
      state.database?.close()
      state.database = nil
    }
    let remade = try? CatalogueDatabase.remake("\(folder)/\(CatalogueDatabase.fileName)")
    if let remade { state.withLock { $0.database = remade } } else { openDatabase() }
  }

  /// The server is stopping: remaining work is done at the next start.
  package var isClosed: Bool { state.withLock { $0.isClosed } }

  /// After a failure, reads the folders again. Runs on the thread.
  package func catchUp() {
    let isBehind = state.withLock { state in
      defer { state.isBehind = false }
      return state.isBehind
    }
    if isBehind { startComparing() }
  }

  /// Closes the database after everything submitted before. Waits at most `patience`, since the disk may not respond.
  package func close(patience: Duration = .seconds(1)) async {
    let isClosed = Latch()
    thread.submit { _ in
      self.state.withLock { state in
        state.database?.close()
        state.database = nil
        state.isClosed = true
      }
      isClosed.set()
    }
    _ = await isClosed.wait(patience: patience)
  }
}

extension Set<RecordingKey> {
  fileprivate mutating func follow(_ event: RecordingEvent) {
    let key = RecordingKey(stream: event.facts.stream, name: event.facts.name)
    switch event.kind {
    case .started, .progressed, .stopped: insert(key)
    case .stored, .failed, .cancelled, .salvaged, .deleted: remove(key)
    }
  }
}
