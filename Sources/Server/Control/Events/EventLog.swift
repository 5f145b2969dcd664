package import Base
internal import FMP4
package import Logging
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// The ordered log of what happened. With a state folder each event is written to its database first, and only then shown:
/// `EventTicket` is how an effect waits for that. Without one, events live and end with the process.
///
/// All kept events are in memory, so reading them waits for no disk. Events are told under locks of streams; a thread of its own
/// writes, a batch at a time. A disk that fails, or does not answer within `patience`, delays nothing any longer: until it has
/// caught up, events are shown at once.
package final class EventLog: Sendable {
  /// The most events that are kept, and their bytes.
  static let limit = 10_000
  static let byteLimit = 16 << 20
  /// The most events of a batch.
  private static let batch = 500
  /// Nanoseconds that effects wait for the disk.
  static let patience: Int64 = 1_000_000_000

  private let clock: SteadyClock
  private let logger: Logger
  private let thread: any WorkThreads
  /// Woken when something is told: it may have to be tended.
  private let waker: Waker
  private let state: Mutex<EventLogState>

  package init(
    clock: SteadyClock, thread: any WorkThreads = WorkQueue("weir-events"), waker: Waker = Waker(), logger: Logger
  ) {
    self.thread = thread
    self.waker = waker
    self.clock = clock
    self.logger = logger
    // Ids begin with the time, so that they are above those of earlier processes, also where some were not written.
    let first = max(1, clock.wallTime.milliseconds)
    state = Mutex(EventLogState(nextID: first))
  }

  /// Opens the database of the state folder; what was told before is written to it. Blocks on the disk; throws its errors, and the
  /// log stays in memory then.
  package func begin(folder: String) throws {
    let (database, wasReplaced) = try EventDatabase.open(folder: folder)
    if wasReplaced { logger.warning("the log of events was damaged and begins anew") }
    let contents = try database.contents(limit: Self.limit)
    let now = clock.monotonic()
    let mustWrite = state.withLock { state in
      state.resume(contents, database)
      let mustWrite = state.needsWriting
      if mustWrite { state.unwrittenSince = now }
      return mustWrite
    }
    if mustWrite { submit() }
  }

  /// Events survive this process.
  package var isDurable: Bool { state.withLock { $0.database != nil } }

  // MARK: Telling

  /// Adds an event. Never waits.
  ///
  /// - Parameters:
  ///   - key: a second report with the same key is no further event; its ticket is that of the first.
  ///   - epoch: the epoch of the stream whose state changed.
  ///   - subject: the file of a recording, below the folder of recordings.
  ///   - isHeld: nobody sees it, nor what is told after it, before `show`, or before `patience` is over.
  ///   - data: an object; cut to what an event may have.
  @discardableResult
  package func tell(
    _ kind: EventKind, of stream: String? = nil, by who: String? = nil, key: String? = nil, epoch: String? = nil,
    subject: String? = nil, because cause: String = "", isHeld: Bool = false, _ data: EventValue = [:]
  ) -> EventTicket {
    let now = clock.monotonic()
    let wall = clock.wallTime
    let outcome = state.withLock { state -> EventLogState.Outcome in
      if let known = key.flatMap({ state.keys[$0] }) { return .known(known) }
      guard let leftOut = state.rate.takes(kind, of: who.map(Self.host) ?? stream ?? "", because: cause, now: now)
      else { return .none }
      let data = leftOut > 0 ? data.with("leftOut", .whole(Int64(leftOut))) : data
      let event = Event(
        id: state.nextID, kind: kind, stream: stream, who: who.map { String($0.prefix(EventValue.longestText)) },
        at: wall,
        data: Self.text(of: data), key: key, epoch: epoch, subject: subject)
      return state.append(event, isHeld: isHeld, now: now)
    }
    waker.wake()
    switch outcome {
    case .none: return .settled
    case .known(let id): return EventTicket(log: self, id: id)
    case .shown(let id, let followers):
      for follower in followers { follower() }
      return EventTicket(log: self, id: id)
    case .toWrite(let id, let begins):
      if begins { submit() }
      return EventTicket(log: self, id: id)
    }
  }

  /// What the event of that key tells of can be seen now, and so can the event.
  package func show(key: String) {
    let woken = state.withLock { state in state.keys[key].map { state.show($0) } ?? [] }
    for body in woken { body() }
  }

  /// The same thing may be told again.
  package func forget(key: String) {
    let begins = state.withLock { state in
      guard state.keys.removeValue(forKey: key) != nil, state.database != nil else { return false }
      state.forgotten.append(key)
      return state.begin()
    }
    if begins { submit() }
  }

  private static func text(of data: EventValue) -> String {
    let text = data.json
    return text.utf8.count <= Event.longestData ? text : #"{"isTooLong":true}"#
  }

  /// An address without its port.
  private static func host(_ who: String) -> String {
    String((who.lastIndex(of: ":").map { who[..<$0] } ?? who[...]).prefix(64))
  }

  // MARK: Writing

  private func submit() {
    thread.submit { [self] pool in
      if case .active = pool { write() }
    }
  }

  private func write() {
    while true {
      let (database, batch) = state.withLock { state in (state.database, state.takeBatch(Self.batch)) }
      guard let database, let batch else { return }
      do {
        try database.write(batch)
      } catch {
        return failed(batch, error)
      }
      let now = clock.monotonic()
      let (isBack, woken) = state.withLock { state in state.wrote(batch, now: now) }
      if isBack { logger.notice("the log of events is written again") }
      for body in woken { body() }
    }
  }

  private func failed(_ batch: EventDatabase.Batch, _ error: any Error) {
    let (isNew, woken) = state.withLock { state in
      state.giveBack(batch)
      return state.becomeLate()
    }
    if isNew {
      logger.error(
        "events cannot be written, so they are told at once and a crash may lose them; look at the disk of --state: \(error)"
      )
    }
    for body in woken { body() }
  }

  /// Ends the waiting for a disk that does not answer, and for effects; repeats what failed, and tells what was left out. Call about
  /// twice a second.
  package func tend() {
    let now = clock.monotonic()
    let (isNew, woken, begins, overdue) = state.withLock { state in
      let overdue = state.rate.overdue(now: now)
      let shown = state.showHeld(until: now &- Self.patience)
      guard let since = state.unwrittenSince, now &- since >= Self.patience else {
        return (false, shown, state.needsWriting && state.begin(), overdue)
      }
      let (isNew, woken) = state.becomeLate()
      return (isNew, woken, state.begin(), overdue)
    }
    if isNew {
      logger.error(
        "the disk of --state does not answer: events are told before they are written, and a crash may lose them")
    }
    for body in woken { body() }
    if begins { submit() }
    for (kind, count) in overdue.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      tell(kind, ["leftOut": .whole(Int64(count))])
    }
  }

  /// Nothing waits for the disk or for an effect, and nothing was left out: `tend` would find nothing.
  package var isIdle: Bool { state.withLock { $0.isIdle } }

  /// Writes what is left. Waits at most `patience`.
  package func close(patience: Duration = .seconds(1)) async {
    guard isDurable else { return }
    let isOver = Latch()
    thread.submit { [self] _ in
      write()
      let database = state.withLock { state in
        state.isClosed = true
        return state.database.take()
      }
      database?.close()
      isOver.set()
    }
    _ = await isOver.wait(patience: patience)
  }

  // MARK: Waiting

  /// Runs `body`, on the writing thread, once the event is written or need not be waited for. False if that is the case already:
  /// then it is not run.
  func whenSettled(_ id: Int64, _ body: @escaping @Sendable () -> Void) -> Bool {
    state.withLock { state in
      guard state.settled < id else { return false }
      state.waiting.append((id, body))
      return true
    }
  }

  /// Everything that was told so far.
  package var ticket: EventTicket { EventTicket(log: self, id: state.withLock { $0.nextID - 1 }) }

  // MARK: Reading

  package struct Page: Sendable {
    /// Oldest first.
    package var events: [Event] = []
    /// Everything up to here was looked at.
    package var through: Int64
    /// Events behind `after` that are not kept any more: the next one that is.
    package var gapUntil: Int64?
    package var isMore = false
  }

  /// The events behind `after` that the filter takes. 0 means from the oldest.
  package func page(after: Int64, limit: Int, _ filter: EventFilter = EventFilter()) -> Page {
    state.withLock { state in
      var page = Page(through: after)
      if after != 0, after < state.dropped { page.gapUntil = state.events.first?.id ?? state.nextID }
      for event in state.events[state.place(after: after)...] {
        guard event.id <= state.visible else { break }
        if filter.takes(event) {
          guard page.events.count < limit else {
            page.isMore = true
            break
          }
          page.events.append(event)
        }
        page.through = event.id
      }
      return page
    }
  }

  /// The newest events that the filter takes, oldest first.
  package func newest(_ limit: Int, _ filter: EventFilter = EventFilter()) -> Page {
    state.withLock { state in
      var events: [Event] = []
      for event in state.events.reversed() where event.id <= state.visible && filter.takes(event) {
        guard events.count < limit else { break }
        events.append(event)
      }
      return Page(events: events.reversed(), through: state.visible)
    }
  }

  /// The id of the newest event that may be seen; of an empty log, the one before its first.
  package var newestID: Int64 { state.withLock { $0.visible } }

  /// Calls `body`, on any thread and often under a lock, when there are new events. Returns a number for `unfollow`.
  package func follow(_ body: @escaping @Sendable () -> Void) -> Int {
    state.withLock { state in
      state.followerCount += 1
      state.followers[state.followerCount] = body
      return state.followerCount
    }
  }

  /// What follows the log sends what is left, and ends.
  package func endReading() {
    let followers = state.withLock { state in
      state.isEnding = true
      _ = state.showHeld(until: .max)
      return Array(state.followers.values)
    }
    for follower in followers { follower() }
  }

  package var isEnding: Bool { state.withLock { $0.isEnding } }

  package func unfollow(_ number: Int) { state.withLock { $0.followers[number] = nil } }

  // MARK: What earlier processes left

  /// Streams whose end was not told.
  package var openStreams: [String: OpenStream] { state.withLock { $0.open } }

  /// The epochs whose end was told, of the events that are kept.
  package var endedEpochs: Set<String> {
    state.withLock { Set($0.events.lazy.filter { $0.kind == .streamEnded }.compactMap(\.epoch)) }
  }

  /// Where a hook is; nil for a new one.
  func place(ofHook name: String) -> HookPlace? { state.withLock { $0.places[name] } }

  func note(_ place: HookPlace, ofHook name: String) {
    let begins = state.withLock { state in
      state.places[name] = place
      guard state.database != nil else { return false }
      state.newPlaces[name] = place
      return state.begin()
    }
    if begins { submit() }
  }
}
