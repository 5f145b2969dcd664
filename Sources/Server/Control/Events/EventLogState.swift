internal import Base
internal import NIOCore

/// The state of an `EventLog`, under its lock. Nothing here waits or calls out.
struct EventLogState {
  /// In the order of their ids.
  private(set) var events = CircularBuffer<Event>()
  var bytes = 0
  var nextID: Int64
  /// Events up to this one are no longer kept.
  var dropped: Int64
  /// Events up to these are waited for no longer, and are in the database.
  private(set) var settled: Int64
  private(set) var written: Int64
  /// Events whose effect is under way. They, and what is behind them, are not shown yet. In the order of their ids.
  private var held: [(id: Int64, since: MonotonicTime)] = []
  var keys: [String: Int64] = [:]
  var open: [String: OpenStream] = [:]
  var rate = EventRate()
  var database: EventDatabase?
  var isWriting = false
  var isClosed = false
  /// Readers come to an end.
  var isEnding = false
  /// Since when there is something that is not written yet.
  var unwrittenSince: MonotonicTime?
  /// The disk is too slow, or fails.
  var isLate = false
  var waiting: [(id: Int64, body: @Sendable () -> Void)] = []
  var followers: [Int: @Sendable () -> Void] = [:]
  var followerCount = 0
  var places: [String: HookPlace] = [:]
  var newPlaces: [String: HookPlace] = [:]
  var forgotten: [String] = []
  var prunedThrough: Int64 = 0

  /// What became of something that was told.
  enum Outcome {
    /// One of too many.
    case none
    case known(Int64)
    case shown(Int64, [@Sendable () -> Void])
    case toWrite(Int64, begins: Bool)
  }

  init(nextID: Int64) {
    (self.nextID, dropped, settled, written) = (nextID, nextID - 1, nextID - 1, nextID - 1)
  }

  /// Events up to this one may be seen.
  var visible: Int64 { min(settled, (held.first?.id ?? .max) - 1) }

  /// The index of the first event behind `id`.
  func place(after id: Int64) -> CircularBuffer<Event>.Index {
    var (low, high) = (0, events.count)
    while low < high {
      let middle = (low + high) / 2
      if events[events.index(events.startIndex, offsetBy: middle)].id <= id { low = middle + 1 } else { high = middle }
    }
    return events.index(events.startIndex, offsetBy: low)
  }

  mutating func resume(_ contents: EventDatabase.Contents, _ database: EventDatabase) {
    self.database = database
    let own = events
    let ownBytes = bytes
    let newest = contents.events.last?.id ?? 0
    if let first = contents.events.first {
      // Of a full log, older events were dropped.
      dropped = contents.events.count >= EventLog.limit ? first.id - 1 : 0
    }
    events = CircularBuffer(contents.events)
    bytes = contents.events.reduce(ownBytes) { $0 + $1.bytes }
    for event in contents.events { if let key = event.key { keys[key] = event.id } }
    self.open = contents.open.merging(open) { $1 }
    places = contents.places
    // A clock that was set back.
    if nextID <= newest {
      let shift = newest + 1 - (own.first?.id ?? nextID)
      for var event in own {
        event.id += shift
        if let key = event.key { keys[key] = event.id }
        events.append(event)
      }
      for index in held.indices { held[index].id += shift }
      nextID += shift
    } else {
      events.append(contentsOf: own)
    }
    written = max(
      newest, (own.isEmpty ? nextID : events[events.index(events.startIndex, offsetBy: contents.events.count)].id) - 1)
    settled = written
    prune()
  }

  /// Adds an event whose id is `nextID`. One that is held is shown after `show`.
  mutating func append(_ event: Event, isHeld: Bool, now: MonotonicTime) -> Outcome {
    nextID += 1
    if isHeld { held.append((event.id, now)) }
    events.append(event)
    bytes += event.bytes
    if let key = event.key { keys[key] = event.id }
    if event.kind.isOfLife, let stream = event.stream {
      open[stream] = event.kind == .streamEnded ? nil : OpenStream(epoch: event.epoch ?? "", kind: event.kind)
    }
    prune()
    guard database != nil else {
      (settled, written) = (event.id, event.id)
      return .shown(event.id, Array(followers.values))
    }
    if unwrittenSince == nil { unwrittenSince = now }
    guard isLate else { return .toWrite(event.id, begins: begin()) }
    settled = event.id
    return .shown(event.id, Array(followers.values))
  }

  private mutating func prune() {
    while events.count > EventLog.limit || bytes > EventLog.byteLimit, let first = events.popFirst() {
      bytes -= first.bytes
      dropped = first.id
      if let key = first.key, keys[key] == first.id { keys[key] = nil }
    }
  }

  // MARK: Writing

  var needsWriting: Bool {
    database != nil && (written < nextID - 1 || !newPlaces.isEmpty || !forgotten.isEmpty)
  }

  var isIdle: Bool { !needsWriting && !isWriting && held.isEmpty && !rate.hasLeftOut }

  /// True if the caller has to submit the work.
  mutating func begin() -> Bool {
    guard !isWriting, !isClosed else { return false }
    isWriting = true
    return true
  }

  /// Nil when nothing is left to be written.
  mutating func takeBatch(_ limit: Int) -> EventDatabase.Batch? {
    guard database != nil, needsWriting else {
      isWriting = false
      return nil
    }
    var batch = EventDatabase.Batch()
    batch.events = Array(events[place(after: written)...].prefix(limit))
    (batch.places, newPlaces) = (newPlaces, [:])
    (batch.forgotten, forgotten) = (forgotten, [])
    // Rows of events that were dropped go with the batch.
    if let first = events.first, first.id > prunedThrough, dropped > 0 { batch.first = first.id }
    return batch
  }

  mutating func giveBack(_ batch: EventDatabase.Batch) {
    isWriting = false
    newPlaces.merge(batch.places) { newer, _ in newer }
    forgotten = batch.forgotten + forgotten
  }

  /// Whether the disk has caught up, and who is to be woken.
  mutating func wrote(
    _ batch: EventDatabase.Batch, now: MonotonicTime
  ) -> (isBack: Bool, woken: [@Sendable () -> Void]) {
    if let first = batch.first { prunedThrough = first }
    written = max(written, batch.events.last?.id ?? written)
    // What was dropped meanwhile is never written.
    written = max(written, dropped)
    unwrittenSince = written < nextID - 1 ? now : nil
    let isBack = isLate && unwrittenSince == nil
    if isBack { isLate = false }
    return (isBack, batch.events.isEmpty ? [] : settle(through: max(settled, written)))
  }

  /// Whether that is news, and who is to be woken.
  mutating func becomeLate() -> (isNew: Bool, woken: [@Sendable () -> Void]) {
    let isNew = !isLate
    isLate = true
    return (isNew, settle(through: nextID - 1))
  }

  private mutating func settle(through id: Int64) -> [@Sendable () -> Void] {
    settled = id
    let woken = waiting.filter { $0.id <= id }.map(\.body)
    waiting.removeAll { $0.id <= id }
    return woken + followers.values
  }

  // MARK: Holding

  /// The effect of the event can be seen: who is to be called.
  mutating func show(_ id: Int64) -> [@Sendable () -> Void] {
    guard let index = held.firstIndex(where: { $0.id == id }) else { return [] }
    held.remove(at: index)
    return index == 0 ? Array(followers.values) : []
  }

  /// Shows events that were told at `time` or before.
  mutating func showHeld(until time: MonotonicTime) -> [@Sendable () -> Void] {
    let count = held.prefix { $0.since <= time }.count
    held.removeFirst(count)
    return count > 0 ? Array(followers.values) : []
  }
}
