internal import Publishing
internal import API
internal import Base
internal import Control
internal import HTTP
internal import LocalSources
internal import Logging
internal import Recording
internal import ServiceLifecycle
internal import Streams
internal import Synchronization
internal import UnixSignals

/// The server between its start and its stop: its parts as services. They end in reverse order, one after another.
struct RunningServer {
  let report: StartupReport
  let streams: StreamRegistry
  let recordings: RecordingLibrary?
  let clock: SteadyClock
  let publishers: [any PublisherEntrance]
  let http: HTTPListener
  /// Nil without commands.
  let commands: ControlSocket?
  let sources: SourceRegistry
  let certificate: CertificateHolder
  let memory: MemoryBudget
  let inhibitor: SleepInhibitor
  let tokens: ViewerTokens
  /// Nil if no other process continues the streams.
  let stateStore: StreamStateStore?
  let events: EventLog
  let hooks: Hooks
  let settings: SettingsHolder
  let control: ControlDatabase?
  /// Wakes `tendStreams` when something begins.
  let waker: Waker
  /// Whether the first source's page is opened in a browser.
  let opensPage: Bool
  let logger: Logger

  /// The parts, each behind those that it needs to the end.
  var services: [any Service] {
    [
      Part { control?.close() },
      Part(work: tend) {
        certificate.end()
        inhibitor.want(false)
      },
      Part { await events.close() },
      Part(work: hooks.run) {
        await hooks.drain()
        await hooks.stop()
      },
      Part { await stateStore?.close() },
      Part {
        events.endReading()
        await http.stop()
        commands?.remove()
      },
      Part {
        await recordings?.shutDown()
        streams.letGo()
      },
      // No new publishers are admitted. Playlists are ended, or left to the next process.
      Part {
        if stateStore == nil { streams.shutDown() } else { streams.handOver() }
        for entrance in publishers { await entrance.stop() }
      },
      Part(work: begin) {
        SystemdNotify.send(.stopping)
        if stateStore != nil { streams.prepareToLeave() }
        // The samples in the encoders belong to streams that are still live.
        await sources.stop()
      },
    ]
  }

  private struct Part: Service {
    /// Goes on until the part has ended; then its task is cancelled.
    var work: @Sendable () async -> Void = {}
    let end: @Sendable () async -> Void

    func run() async throws {
      await withTaskGroup(of: Void.self) { group in
        group.addTask(operation: work)
        try? await gracefulShutdown()
        await end()
        group.cancelAll()
      }
    }
  }

  private func begin() async {
    // Signals are handled only from here on, so a program that reads this report may stop weir.
    report.tell(logger)
    SystemdNotify.send(.ready)
    if opensPage { PageOpener.open(report.page) }
    certificate.begin()
    await sources.run()
  }

  /// What goes on until everything else has ended.
  private func tend() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await tendStreams() }
      group.addTask { await reloadAtHangUp() }
      group.addTask { await tokens.keys.run() }
    }
  }

  /// Reads the settings again at each SIGHUP.
  private func reloadAtHangUp() async {
    for await _ in await UnixSignalsSequence(trapping: .sighup) {
      _ = await settings.control?.reload(by: "SIGHUP")
      waker.wake()
    }
  }

  /// Ends streams whose publishers stay away, and checks recordings, free memory and whether the machine may sleep. One timer for
  /// all of it, and hardly any while nothing is live (`TendingRhythm`).
  private func tendStreams() async {
    var teller = SourceTeller(events)
    var withdrawals = 0
    var freed = FreedMemory()
    var relief = MemoryRelief()
    var rhythm = TendingRhythm()
    var turn = 0
    while !Task.isCancelled {
      let wakes = waker.count
      events.tend()
      teller.look(at: sources)
      streams.tend()
      // Publications by tokens end with the keys that signed these.
      if tokens.keys.withdrawals != withdrawals {
        withdrawals = tokens.keys.withdrawals
        streams.endRevoked()
      }
      recordings?.tend()
      inhibitor.want(sources.isCapturing || recordings?.isRecordingAny == true)
      let connections = http.takePeakConnections()
      // A look reads six files. Without clients and streams little changes.
      if turn % 4 == 0 || connections > 0 || !streams.all.isEmpty {
        let missing = memory.look(expectedGrowth: streams.expectedGrowth)
        if relief.isDue(missing: missing) {
          http.shedForMemory()
          FreedMemory.giveBack()
        }
      }
      http.look()
      if freed.isDue(connections: connections) { FreedMemory.giveBack() }
      // The rules of retention, once a second.
      if turn % 2 == 0, recordings?.timeSinceRetention ?? 0 >= Self.retentionPause { retain() }
      turn &+= 1
      // While the rules are applied, when they are due is not known.
      let due = recordings.flatMap { $0.isRetaining ? nil : $0.timeToRetention(from: clock.wallTime) }
      switch rhythm.pause(isLive: connections > 0 || freed.isAwaited || isLive, due: due) {
      case .short: try? await Task.sleep(for: TendingRhythm.short)
      case .long(let time):
        await waker.sleep(for: time, since: wakes)
        // A look at everything.
        turn = 0
      }
    }
  }

  /// Nanoseconds from the end of one run to the next: the catalogue's thread has other work.
  private static let retentionPause: Int64 = 400_000_000

  /// Applies the rules of retention. The next look comes sooner if they are due sooner.
  private func retain() {
    recordings?.retainSoon(now: clock.wallTime) { [recordings, clock, waker] in
      let due = recordings?.timeToRetention(from: clock.wallTime)
      if let due, due < TendingRhythm.longest { waker.wake() }
    }
  }

  /// Whether anything goes on that has to be looked at, beside connections. What begins later must call `waker`, or be begun over a
  /// connection.
  private var isLive: Bool {
    !streams.isIdle || !events.isIdle || recordings?.isIdle == false || !sources.areStopped
  }
}
