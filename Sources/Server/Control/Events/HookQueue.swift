/// The events that one hook has to do, as a value. Those of one stream are done one after another, in order; those of different
/// streams beside each other. An event that is tried again holds up only its own stream: it alone stays here, and those behind it
/// stay in the log until it is done or given up.
struct HookQueue: Sendable {
  struct Item: Sendable {
    let event: Event
    /// Failed attempts.
    var failures = 0
    var state = State.waiting

    enum State: Sendable, Hashable {
      case waiting
      case running
      /// Not before this monotonic second.
      case pausing(until: Int64)
    }
  }

  /// What is not done, in order within each stream.
  private(set) var items: [Item] = []
  /// Up to this event everything was looked at.
  private(set) var readThrough: Int64
  /// Streams that stayed behind: of their events, those after the id that stands here and up to `readThrough` are still in the log.
  private(set) var behind: [String?: Int64]

  init(at place: HookPlace) { (readThrough, behind) = (place.through, place.behind) }

  init(after position: Int64) { self.init(at: HookPlace(through: position)) }

  /// Where the hook is: what it has done, and what not.
  var place: HookPlace {
    var behind = behind
    for item in items {
      let stream = item.event.stream
      behind[stream] = min(behind[stream] ?? .max, item.event.id - 1)
    }
    return HookPlace(through: readThrough, behind: behind)
  }

  /// Up to this event everything is done.
  var doneThrough: Int64 { place.doneThrough }

  /// The most events to be read now.
  var room: Int {
    let pausing = items.count(where: \.state.isPausing)
    return max(0, min(HookSettings.window - (items.count - pausing), HookSettings.heldUp - pausing))
  }

  /// Events that wait or are being done. Those of `behind` are not counted.
  var waiting: Int { items.count }

  /// Something is being done, or can be at once.
  var isBusy: Bool {
    var seen: Set<String?> = []
    let isOfItems = items.contains { item in
      guard seen.insert(item.event.stream).inserted else { return false }
      return item.state == .running || item.state == .waiting
    }
    return isOfItems || behind.keys.contains { !seen.contains($0) }
  }

  /// Something is being done.
  var isRunning: Bool { items.contains { $0.state == .running } }

  /// Leaves out what is not being done.
  mutating func drop(where isUnwanted: (Event) -> Bool) {
    items.removeAll { $0.state != .running && isUnwanted($0.event) }
  }

  /// Takes no event of the log any more.
  mutating func dropAll() {
    items.removeAll { $0.state != .running }
    behind = [:]
  }

  // MARK: Reading the log

  /// Takes new events, all that are wanted behind `readThrough` and up to `id`.
  mutating func add(_ events: [Event], through id: Int64) {
    var counts: [String?: Int] = [:]
    for item in items { counts[item.event.stream, default: 0] += item.state.isPausing ? HookSettings.ofStream : 1 }
    for event in events where behind[event.stream] == nil {
      guard counts[event.stream, default: 0] < HookSettings.ofStream else {
        behind[event.stream] = event.id - 1
        continue
      }
      counts[event.stream, default: 0] += 1
      items.append(Item(event: event))
    }
    readThrough = max(readThrough, id)
  }

  /// A stream of `behind` that has nothing left here, and after which event it goes on.
  var next: (stream: String?, after: Int64)? {
    guard room > 0, !behind.isEmpty else { return nil }
    let held = Set(items.map(\.event.stream))
    return behind.filter { !held.contains($0.key) }.min { $0.value < $1.value }.map { ($0.key, $0.value) }
  }

  /// Takes events of a stream of `behind`.
  ///
  /// - Parameter id: all that are wanted up to here; nil if the log has no more.
  mutating func add(_ events: [Event], of stream: String?, through id: Int64?) {
    items += events.filter { $0.id <= readThrough }.map { Item(event: $0) }
    behind[stream] = id.flatMap { $0 >= readThrough ? nil : $0 }
  }

  // MARK: Doing

  /// The next event to be done, which runs from now on; nil if there is none.
  mutating func begin(now: Int64) -> Item? {
    guard items.count(where: { $0.state == .running }) < HookSettings.atOnce else { return nil }
    var busy: Set<String?> = []
    for index in items.indices {
      guard busy.insert(items[index].event.stream).inserted else { continue }
      switch items[index].state {
      case .waiting: break
      case .pausing(let until) where until <= now: break
      default: continue
      }
      items[index].state = .running
      return items[index]
    }
    return nil
  }

  /// The next second at which something is tried again.
  var nextTime: Int64? {
    items.compactMap { if case .pausing(let until) = $0.state { until } else { nil } }.min()
  }

  mutating func finish(_ id: Int64) { items.removeAll { $0.event.id == id } }

  /// Returns the seconds until the next attempt; nil after the last, when the event is given up.
  mutating func fail(_ id: Int64, now: Int64) -> Int64? {
    guard let index = items.firstIndex(where: { $0.event.id == id }) else { return nil }
    let failures = items[index].failures
    guard HookSettings.retries.indices.contains(failures) else {
      finish(id)
      return nil
    }
    items[index].failures += 1
    items[index].state = .pausing(until: now + HookSettings.retries[failures])
    leaveBehind(items[index].event)
    return HookSettings.retries[failures]
  }

  /// What waits behind an event that failed stays in the log: so streams that are held up take no place from others.
  private mutating func leaveBehind(_ event: Event) {
    let isBehind = { (item: Item) in item.event.stream == event.stream && item.event.id > event.id }
    guard let first = items.first(where: isBehind) else { return }
    behind[event.stream] = min(behind[event.stream] ?? .max, first.event.id - 1)
    items.removeAll(where: isBehind)
  }
}

extension HookQueue.Item.State {
  fileprivate var isPausing: Bool { if case .pausing = self { true } else { false } }
}
