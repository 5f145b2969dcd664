package import Base
package import Logging
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// All hooks of a server. Each has its own queue and place in the log, so a slow receiver delays no other. They change while
/// the server runs.
package final class Hooks: Sendable {
  private struct State {
    /// As configured.
    var hooks: [Hook] = []
    /// Those that were removed. They end with what they had under way.
    var leaving: [Hook] = []
    /// Made for the first program.
    var programs: NIOThreadPool?
    var isStopping = false
  }

  package let deliveries = HookDeliveries()
  private let state = Mutex(State())
  private let (arrivals, arrive) = AsyncStream.makeStream(of: Hook.self)
  private let isStopping = StopFlag()
  private let log: EventLog
  private let recordings: String?
  private let clock: SteadyClock
  private let logger: Logger

  /// Programs of all hooks that run at a time.
  static let programsAtOnce = 4

  /// - Parameter recordings: the folder of recordings, for `{path}`.
  package init(_ settings: [HookSettings], log: EventLog, recordings: String?, clock: SteadyClock, logger: Logger) {
    (self.log, self.recordings, self.clock, self.logger) = (log, recordings, clock, logger)
    let hooks = settings.map(make)
    state.withLock { $0.hooks = hooks }
    for hook in hooks { arrive.yield(hook) }
  }

  deinit { state.withLock { $0.programs }?.shutdownGracefully { _ in } }

  /// Set once, when the server stops.
  private final class StopFlag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
  }

  // MARK: Deliveries

  private func make(_ settings: HookSettings) -> Hook {
    Hook(settings, log: log, deliveries: deliveries, clock: clock, logger: logger) { [weak self] event, settings in
      guard let self else { return .interrupted }
      switch settings.action {
      case .post(let url, let secret):
        return await WebhookRequest(event, to: url, secret, now: clock.wallTime).send()
      case .run(let command):
        return await run(command, for: event)
      }
    }
  }

  private func run(_ command: HookCommand, for event: Event) async -> HookOutcome {
    guard let programs = threads() else { return .interrupted }
    let (words, isStopping) = (command.words(for: event, recordings: recordings), isStopping)
    let end = try? await programs.runIfActive {
      isStopping.isSet
        ? HookProcess.End.stopped : HookProcess.run(words, input: event.json + "\n") { isStopping.isSet }
    }
    return HookOutcome(end ?? .stopped)
  }

  /// Nil when the server stops.
  private func threads() -> NIOThreadPool? {
    state.withLock { state in
      guard !state.isStopping else { return nil }
      if let programs = state.programs { return programs }
      let programs = NIOThreadPool(numberOfThreads: Self.programsAtOnce)
      programs.start()
      state.programs = programs
      return programs
    }
  }

  // MARK: Life

  /// The hooks' places in the log. A new hook begins here. Call before anything is told.
  package func begin() { for hook in all { hook.begin() } }

  private var all: [Hook] { state.withLock { $0.hooks } }

  /// Other hooks from now on. One with a known name keeps its place, and deliveries under way go on as they began.
  package func follow(_ settings: [HookSettings]) {
    let before = state.withLock { $0.hooks + $0.leaving }
    var next: [Hook] = []
    for one in settings {
      if let known = before.first(where: { $0.name == one.name }), known.follow(one) {
        next.append(known)
        continue
      }
      let hook = make(one)
      hook.begin()
      arrive.yield(hook)
      next.append(hook)
    }
    let leaving = before.filter { hook in !next.contains { $0 === hook } }
    for hook in leaving { hook.remove() }
    state.withLock { state in (state.hooks, state.leaving) = (next, leaving.filter { !$0.hasEnded }) }
  }

  /// Delivers until the task is cancelled. Call once.
  package func run() async {
    await withDiscardingTaskGroup { group in
      for await hook in arrivals { group.addTask { await hook.run() } }
    }
  }

  /// Gives what was told last the time to be delivered. A stream that waits for its receiver holds that up.
  package func drain(patience: Duration = .seconds(2)) async {
    let end = ContinuousClock.now + patience
    let waiting = state.withLock { $0.hooks + $0.leaving }
    while ContinuousClock.now < end, waiting.contains(where: { !$0.isIdle }) {
      try? await Task.sleep(for: .milliseconds(20))
    }
  }

  /// Ends running programs; what was not done is done by the next process.
  package func stop() async {
    isStopping.set()
    let programs = state.withLock { state in
      state.isStopping = true
      return state.programs
    }
    try? await programs?.shutdownGracefully()
  }

  /// For the API.
  package struct Status: Sendable {
    package var name: String
    package var target: String
    package var position: Int64
    package var waiting: Int
  }

  package var status: [Status] { all.map(\.status) }
}

/// What became of one attempt.
enum HookOutcome: Sendable, Hashable {
  case done(String)
  case failed(String)
  /// The server stops: neither done nor failed.
  case interrupted

  init(_ end: HookProcess.End) {
    switch end {
    case .exited(0): self = .done("exit status 0")
    case .exited(let status): self = .failed("exit status \(status)")
    case .signalled(let signal): self = .failed("signal \(signal) ended it")
    case .tooLong: self = .failed("it ran for more than \(HookProcess.patience) s and was ended")
    case .notStarted(let why): self = .failed("it cannot be started: \(why)")
    case .stopped: self = .interrupted
    }
  }
}
