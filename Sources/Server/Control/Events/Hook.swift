internal import Base
internal import FMP4
internal import Logging
internal import Synchronization

/// One hook: reads the log behind its place, does what is to be done, and keeps the place in the database.
final class Hook: Sendable {
  private enum Life { case wanted, removed, over }

  private struct State {
    var settings: HookSettings
    var life = Life.wanted
  }

  /// The same for the whole life of a hook.
  let name: String
  private let state: Mutex<State>
  private let log: EventLog
  private let deliveries: HookDeliveries
  private let clock: SteadyClock
  private let logger: Logger
  private let perform: @Sendable (Event, HookSettings) async -> HookOutcome
  private let queue: Mutex<HookQueue>
  /// A place without a delivery is written this often, in seconds.
  private static let noteInterval: Int64 = 60
  /// Called when there may be something to do.
  private let (calls, call) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

  init(
    _ settings: HookSettings, log: EventLog, deliveries: HookDeliveries, clock: SteadyClock, logger: Logger,
    perform: @escaping @Sendable (Event, HookSettings) async -> HookOutcome
  ) {
    (name, self.log, self.deliveries, self.clock) = (settings.name, log, deliveries, clock)
    state = Mutex(State(settings: settings))
    (self.logger, self.perform) = (logger, perform)
    queue = Mutex(HookQueue(after: 0))
  }

  /// Takes its place in the log: where the last process was, or for a new hook the end.
  func begin() {
    let known = log.place(ofHook: name)
    let place = known ?? HookPlace(through: log.newestID)
    queue.withLock { $0 = HookQueue(at: place) }
    if known == nil { log.note(place, ofHook: name) }
  }

  // MARK: Reloads

  private var settings: HookSettings { state.withLock { $0.settings } }

  private var isRemoved: Bool { state.withLock { $0.life != .wanted } }

  /// It was removed, and nothing is under way any more.
  var hasEnded: Bool { state.withLock { $0.life == .over } }

  /// Other settings. What is being delivered goes on as it began; what waits and is no longer wanted is left out. False if the
  /// hook is over.
  func follow(_ settings: HookSettings) -> Bool {
    let goesOn = state.withLock { state in
      guard state.life != .over else { return false }
      state = State(settings: settings)
      return true
    }
    guard goesOn else { return false }
    queue.withLock { $0.drop { !settings.filter.takes($0) } }
    call.yield()
    return true
  }

  /// Begins no further delivery, and is over when those under way have ended.
  func remove() {
    state.withLock { if $0.life == .wanted { $0.life = .removed } }
    call.yield()
  }

  /// Whether a hook that was removed has nothing under way any more.
  private func isOver() -> Bool {
    let isFree = queue.withLock { queue in
      queue.dropAll()
      return !queue.isRunning
    }
    guard isFree else { return false }
    log.note(queue.withLock { $0.place }, ofHook: name)
    return state.withLock { state in
      guard state.life == .removed else { return false }
      state.life = .over
      return true
    }
  }

  var status: Hooks.Status {
    let target = settings.target
    return queue.withLock { queue in
      Hooks.Status(name: name, target: target, position: queue.doneThrough, waiting: queue.waiting)
    }
  }

  private var second: Int64 { clock.monotonic().nanoseconds / 1_000_000_000 }

  /// Delivers until the hook is over, or the task is cancelled. Call once.
  func run() async {
    let follower = log.follow { [call] in call.yield() }
    defer { log.unfollow(follower) }
    await withDiscardingTaskGroup { group in
      var noted = queue.withLock { $0.place }
      var notedAt = second
      group.addTask {
        // Repeated attempts are due at some second. Without any it is not woken.
        while !Task.isCancelled {
          let wakes = self.repeats.count
          await self.repeats.sleep(for: self.hasRepeats ? .seconds(1) : .seconds(3600), since: wakes)
          if self.repeats.count == wakes, self.hasRepeats { self.call.yield() }
        }
        self.call.finish()
      }
      call.yield()
      for await _ in calls {
        if isRemoved {
          if isOver() { return group.cancelAll() }
          continue
        }
        read()
        start(&group)
        if hasRepeats { repeats.wake() }
        // Before the place is read: what is delivered between the two is told again.
        let wasDelivered = delivered.exchange(false, ordering: .relaxed)
        let place = queue.withLock { $0.place }
        guard place != noted, second - notedAt >= (wasDelivered ? place.noteInterval : Self.noteInterval) else {
          if wasDelivered { delivered.store(true, ordering: .relaxed) }
          continue
        }
        (noted, notedAt) = (place, second)
        log.note(place, ofHook: name)
      }
    }
    // A hook that is over has noted it; another one may have its name now.
    guard !hasEnded else { return }
    log.note(queue.withLock { $0.place }, ofHook: name)
  }

  /// Nothing is being done or about to be.
  var isIdle: Bool {
    let isRemoved = isRemoved
    return queue.withLock { isRemoved ? !$0.isRunning : $0.readThrough >= log.newestID && !$0.isBusy }
  }

  /// Woken when an attempt is to be repeated.
  private let repeats = Waker()
  private var hasRepeats: Bool { queue.withLock { $0.nextTime != nil } }

  /// Something was delivered since the place was written.
  private let delivered = Atomic(false)

  private func read() {
    let filter = settings.filter
    while let next = queue.withLock({ $0.next }) {
      var ofStream = filter
      ofStream.streams = { stream in stream == next.stream && filter.streams?(stream) ?? true }
      let page = log.page(after: next.after, limit: HookSettings.ofStream, ofStream)
      if let gap = page.gapUntil { miss(gap) }
      queue.withLock { $0.add(page.events, of: next.stream, through: page.isMore ? page.through : nil) }
    }
    let (after, room) = queue.withLock { ($0.readThrough, $0.room) }
    guard room > 0 else { return }
    let page = log.page(after: after, limit: room, filter)
    if let next = page.gapUntil { miss(next) }
    queue.withLock { $0.add(page.events, through: page.through) }
  }

  /// Starts what can be started.
  private func start(_ group: inout DiscardingTaskGroup) {
    let now = second
    while let item = queue.withLock({ $0.begin(now: now) }) {
      group.addTask {
        await self.attempt(item)
        self.call.yield()
      }
    }
  }

  private func attempt(_ item: HookQueue.Item) async {
    let (wall, began, settings) = (clock.wallTime, clock.monotonic(), settings)
    let outcome = await perform(item.event, settings)
    var attempt = HookDeliveries.Attempt(
      hook: name, event: item.event.id, kind: item.event.kind, number: item.failures + 1, at: wall,
      milliseconds: (clock.monotonic() &- began) / 1_000_000, isDone: true, outcome: "")
    switch outcome {
    case .interrupted: return
    case .done(let text):
      queue.withLock { $0.finish(item.event.id) }
      attempt.outcome = text
    case .failed(let text):
      let pause = queue.withLock { $0.fail(item.event.id, now: second) }
      attempt.outcome = text
      attempt.isDone = false
      attempt.next = pause.map { clock.wallTime &+ $0 * 1_000_000_000 }
      let what = "\(settings.target) did not take \(item.event.kind.rawValue) \(item.event.id): \(text)"
      if let pause {
        logger.warning("hook \(name): \(what); tried again in \(pause) s")
      } else {
        logger.error("hook \(name): \(what); it is given up")
      }
    }
    delivered.store(true, ordering: .relaxed)
    deliveries.note(attempt)
  }

  /// Events that the hook did not come to are not kept any more.
  private func miss(_ next: Int64) {
    let text = "events before \(next) were dropped: more than \(EventLog.limit) waited"
    logger.error("hook \(name): \(text)")
    deliveries.note(
      HookDeliveries.Attempt(
        hook: name, number: 0, at: clock.wallTime, milliseconds: 0, isDone: false, outcome: text))
  }
}
