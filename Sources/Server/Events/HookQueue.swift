/// The events that one hook has to do, as a value. Those of one stream are done one after another, in order; those of different
/// streams beside each other. An event that is tried again holds up only its own stream.
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
      case done
    }
  }

  private(set) var items: [Item] = []
  /// Up to this event everything was looked at.
  private(set) var readThrough: Int64
  /// Up to this event everything is done.
  private(set) var doneThrough: Int64

  init(after position: Int64) { (readThrough, doneThrough) = (position, position) }

  var room: Int { max(0, HookSettings.window - items.count) }

  /// Events that wait or are being done.
  var waiting: Int { items.count { $0.state != .done } }

  /// Something is being done, or can be at once.
  var isBusy: Bool {
    var seen: Set<String?> = []
    return items.contains { item in
      guard item.state != .done, seen.insert(item.event.stream).inserted else { return false }
      return item.state == .running || item.state == .waiting
    }
  }

  /// Something is being done.
  var isRunning: Bool { items.contains { $0.state == .running } }

  /// Leaves out what is not being done.
  mutating func drop(where isUnwanted: (Event) -> Bool) {
    items.removeAll { $0.state != .running && isUnwanted($0.event) }
    settle()
  }

  mutating func add(_ events: [Event], through id: Int64) {
    items += events.map { Item(event: $0) }
    readThrough = max(readThrough, id)
    settle()
  }

  /// The next event to be done, which runs from now on; nil if there is none.
  mutating func begin(now: Int64) -> Item? {
    guard items.count(where: { $0.state == .running }) < HookSettings.atOnce else { return nil }
    var busy: Set<String?> = []
    for index in items.indices where items[index].state != .done {
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

  mutating func finish(_ id: Int64) {
    guard let index = index(of: id) else { return }
    items[index].state = .done
    settle()
  }

  /// Returns the seconds until the next attempt; nil after the last, when the event is given up.
  mutating func fail(_ id: Int64, now: Int64) -> Int64? {
    guard let index = index(of: id) else { return nil }
    let failures = items[index].failures
    guard HookSettings.retries.indices.contains(failures) else {
      finish(id)
      return nil
    }
    items[index].failures += 1
    items[index].state = .pausing(until: now + HookSettings.retries[failures])
    return HookSettings.retries[failures]
  }

  private func index(of id: Int64) -> Int? { items.firstIndex { $0.event.id == id } }

  private mutating func settle() {
    let done = items.prefix { $0.state == .done }.count
    if done > 0 { items.removeFirst(done) }
    doneThrough = items.first.map { $0.event.id - 1 } ?? readThrough
  }
}
