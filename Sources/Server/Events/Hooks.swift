internal import FMP4
internal import Ingest
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// All hooks of a server. Each has its own queue and place in the log, so a slow receiver delays no other.
final class Hooks: Sendable {
  let deliveries = HookDeliveries()
  private let hooks: [Hook]
  private let programs: NIOThreadPool?
  private let isStopping = StopFlag()

  /// Programs of all hooks that run at a time.
  static let programsAtOnce = 4

  /// - Parameter recordings: the folder of recordings, for `{path}`.
  init(_ settings: [HookSettings], log: EventLog, recordings: String?, clock: SteadyClock, logger: Logger) {
    let isRun = settings.contains { if case .run = $0.action { true } else { false } }
    let programs = isRun ? NIOThreadPool(numberOfThreads: Self.programsAtOnce) : nil
    programs?.start()
    self.programs = programs
    let (deliveries, isStopping) = (self.deliveries, self.isStopping)
    hooks = settings.map { one in
      Hook(one, log: log, deliveries: deliveries, clock: clock, logger: logger) { event in
        switch one.action {
        case .post(let url, let secret):
          return await WebhookRequest(event, to: url, secret, now: clock.wallTime).send()
        case .run(let command):
          guard let programs else { return .failed("there is no thread") }
          let words = command.words(for: event, recordings: recordings)
          let end = try? await programs.runIfActive {
            isStopping.isSet
              ? HookProcess.End.stopped : HookProcess.run(words, input: event.json + "\n") { isStopping.isSet }
          }
          return HookOutcome(end ?? .stopped)
        }
      }
    }
  }

  deinit { programs?.shutdownGracefully { _ in } }

  /// Set once, when the server stops.
  private final class StopFlag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
  }

  /// The hooks' places in the log. A new hook begins here. Call before anything is told.
  func begin() { for hook in hooks { hook.begin() } }

  /// Delivers until the task is cancelled.
  func run() async {
    await withTaskGroup(of: Void.self) { group in
      for hook in hooks { group.addTask { await hook.run() } }
    }
  }

  /// Gives what was told last the time to be delivered. A stream that waits for its receiver holds that up.
  func drain(patience: Duration = .seconds(2)) async {
    let end = ContinuousClock.now + patience
    while ContinuousClock.now < end, hooks.contains(where: { !$0.isIdle }) {
      try? await Task.sleep(for: .milliseconds(20))
    }
  }

  /// Ends running programs; what was not done is done by the next process.
  func stop() async {
    isStopping.set()
    try? await programs?.shutdownGracefully()
  }

  var isEmpty: Bool { hooks.isEmpty }

  /// For the API.
  struct Status: Sendable {
    var name: String
    var target: String
    var position: Int64
    var waiting: Int
  }

  var status: [Status] { hooks.map(\.status) }
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
