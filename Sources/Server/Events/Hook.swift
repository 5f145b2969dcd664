internal import FMP4
internal import Ingest
internal import Logging
internal import Synchronization

/// One hook: reads the log behind its place, does what is to be done, and keeps the place in the database.
final class Hook: Sendable {
  private let settings: HookSettings
  private let log: EventLog
  private let deliveries: HookDeliveries
  private let clock: SteadyClock
  private let logger: Logger
  private let perform: @Sendable (Event) async -> HookOutcome
  private let queue: Mutex<HookQueue>
  /// A place without a delivery is written this often, in seconds.
  private static let noteInterval: Int64 = 60

  init(
    _ settings: HookSettings, log: EventLog, deliveries: HookDeliveries, clock: SteadyClock, logger: Logger,
    perform: @escaping @Sendable (Event) async -> HookOutcome
  ) {
    (self.settings, self.log, self.deliveries, self.clock) = (settings, log, deliveries, clock)
    (self.logger, self.perform) = (logger, perform)
    queue = Mutex(HookQueue(after: 0))
  }

  /// Takes its place in the log: where the last process was, or for a new hook the end.
  func begin() {
    let known = log.position(ofHook: settings.name)
    let position = known ?? log.newestID
    queue.withLock { $0 = HookQueue(after: position) }
    if known == nil { log.note(position: position, ofHook: settings.name) }
  }

  var status: Hooks.Status {
    queue.withLock { queue in
      Hooks.Status(
        name: settings.name, target: settings.target, position: queue.doneThrough, waiting: queue.waiting)
    }
  }

  private var second: Int64 { clock.monotonic().nanoseconds / 1_000_000_000 }

  func run() async {
    let (calls, call) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let follower = log.follow { call.yield() }
    defer { log.unfollow(follower) }
    await withDiscardingTaskGroup { group in
      var noted = queue.withLock { $0.doneThrough }
      var notedAt = second
      group.addTask {
        // Repeated attempts are due at some second.
        while !Task.isCancelled {
          try? await Task.sleep(for: .seconds(1))
          if self.queue.withLock({ $0.nextTime != nil }) { call.yield() }
        }
        call.finish()
      }
      call.yield()
      for await _ in calls {
        read()
        start(&group, call)
        let done = queue.withLock { $0.doneThrough }
        let isQuiet = queue.withLock { $0.items.isEmpty }
        guard done != noted,
          !isQuiet || delivered.exchange(false, ordering: .relaxed) || second - notedAt >= Self.noteInterval
        else { continue }
        (noted, notedAt) = (done, second)
        log.note(position: done, ofHook: settings.name)
      }
    }
    log.note(position: queue.withLock { $0.doneThrough }, ofHook: settings.name)
  }

  /// Nothing is being done or about to be.
  var isIdle: Bool {
    queue.withLock { $0.readThrough >= log.newestID && !$0.isBusy }
  }

  /// Something was delivered since the place was written.
  private let delivered = Atomic(false)

  private func read() {
    let (after, room) = queue.withLock { ($0.readThrough, $0.room) }
    guard room > 0 else { return }
    let page = log.page(after: after, limit: room, settings.filter)
    if let next = page.gapUntil { miss(next) }
    queue.withLock { $0.add(page.events, through: page.through) }
  }

  /// Starts what can be started.
  private func start(_ group: inout DiscardingTaskGroup, _ call: AsyncStream<Void>.Continuation) {
    let now = second
    while let item = queue.withLock({ $0.begin(now: now) }) {
      group.addTask {
        await self.attempt(item)
        call.yield()
      }
    }
  }

  private func attempt(_ item: HookQueue.Item) async {
    let (wall, began) = (clock.wallTime, clock.monotonic())
    let outcome = await perform(item.event)
    var attempt = HookDeliveries.Attempt(
      hook: settings.name, event: item.event.id, kind: item.event.kind, number: item.failures + 1, at: wall,
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
        logger.warning("hook \(settings.name): \(what); tried again in \(pause) s")
      } else {
        logger.error("hook \(settings.name): \(what); it is given up")
      }
    }
    delivered.store(true, ordering: .relaxed)
    deliveries.note(attempt)
  }

  /// Events that the hook did not come to are not kept any more.
  private func miss(_ next: Int64) {
    let text = "events before \(next) were dropped: more than \(EventLog.limit) waited"
    logger.error("hook \(settings.name): \(text)")
    deliveries.note(
      HookDeliveries.Attempt(
        hook: settings.name, number: 0, at: clock.wallTime, milliseconds: 0, isDone: false, outcome: text))
  }
}
