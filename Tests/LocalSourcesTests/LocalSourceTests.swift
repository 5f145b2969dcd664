import FMP4
import Local
@testable import LocalSources
import Publishing
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct LocalSourceTests {
  /// A source that runs until it is stopped, and takes its time for that where it is told to.
  private final class Run: MediaSource {
    let name: StreamName
    private let held: CaptureSettings?
    private let ending = Mutex<EndReason?>(nil)
    private let isHeld = Atomic(false)

    init(_ name: StreamName, settings: CaptureSettings?) {
      self.name = name
      held = settings
    }

    func run() async -> EndReason {
      while true {
        if let reason = ending.withLock({ $0 }), !isHeld.load(ordering: .relaxed) { return reason }
        try? await Task.sleep(for: .milliseconds(1))
      }
    }

    func stop(_ reason: EndReason) { ending.withLock { if $0 == nil { $0 = reason } } }
    func hold() { isHeld.store(true, ordering: .relaxed) }
    func release() { isHeld.store(false, ordering: .relaxed) }

    var status: CaptureStatus? { CaptureStatus() }
    var settings: CaptureSettings? { CaptureSettings(camera: CameraSettings(device: "/dev/other")) }
    var given: CaptureSettings? { held }
    func change(_ change: CaptureChange) -> CaptureRefusal? { nil }
  }

  /// Admits no publisher: these runs publish nothing.
  private struct TestGate: PublishGate {
    func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink { throw .shuttingDown }
  }

  /// A source with all the runs that it has had.
  private final class Stage: Sendable {
    let source: LocalSource
    private let runs: Runs

    private final class Runs: Sendable {
      let all = Mutex<[Run]>([])
    }

    init() throws {
      let name = try #require(StreamName("cam"))
      let runs = Runs()
      self.runs = runs
      source = LocalSource(name: name, kind: "capture", gate: TestGate()) { settings, _ in
        let actor = Run(name, settings: settings)
        runs.all.withLock { $0.append(actor) }
        return actor
      }
    }

    var actors: [Run] { runs.all.withLock { $0 } }

    /// Waits for a run.
    func actor(_ number: Int) async throws -> Run {
      while actors.count <= number { try await Task.sleep(for: .milliseconds(1)) }
      return actors[number]
    }

    func stopped() async throws -> EndReason? {
      while true {
        if case .stopped(let reason) = source.activity { return reason }
        try await Task.sleep(for: .milliseconds(1))
      }
    }
  }

  /// Runs the source beside the test, and ends it afterwards.
  private func staged(_ test: (Stage) async throws -> Void) async throws {
    let stage = try Stage()
    async let running: Void = stage.source.run()
    defer { stage.source.shutDown() }
    try await test(stage)
    stage.source.shutDown()
    await running
  }

  @Test func itRunsFromTheServersStartOn() async throws {
    try await staged { stage in
      let actor = try await stage.actor(0)
      #expect(actor.given == nil)
      guard case .live = stage.source.activity else {
        Issue.record("\(stage.source.activity)")
        return
      }
    }
  }

  @Test func stoppedItHasNoDevicesAndStartedItHasThoseItHadLast() async throws {
    try await staged { stage in
      _ = try await stage.actor(0)
      stage.source.stop()
      #expect(try await stage.stopped() == nil)
      #expect(stage.source.status == nil && stage.source.settings == nil)
      #expect(stage.source.change(.keyFrame) == .hasEnded)
      #expect(await stage.source.start() == nil)
      let second = try await stage.actor(1)
      #expect(second.given?.camera?.device == "/dev/other")
      #expect(stage.source.change(.keyFrame) == nil)
    }
  }

  @Test func startingWhatRunsAndStoppingWhatIsStoppedChangesNothing() async throws {
    try await staged { stage in
      _ = try await stage.actor(0)
      #expect(await stage.source.start() == nil)
      stage.source.stop()
      _ = try await stage.stopped()
      stage.source.stop()
      try await Task.sleep(for: .milliseconds(20))
      #expect(stage.actors.count == 1)
    }
  }

  @Test func startedWhileItStopsItRunsAgainAfterwards() async throws {
    try await staged { stage in
      let first = try await stage.actor(0)
      first.hold()
      stage.source.stop()
      guard case .stopping = stage.source.activity else {
        Issue.record("\(stage.source.activity)")
        return
      }
      #expect(await stage.source.start() == nil)
      try await Task.sleep(for: .milliseconds(20))
      #expect(stage.actors.count == 1, "devices are not opened twice")
      first.release()
      _ = try await stage.actor(1)
    }
  }

  @Test func startedAndStoppedWhileItStopsItStaysStopped() async throws {
    try await staged { stage in
      let first = try await stage.actor(0)
      first.hold()
      stage.source.stop()
      #expect(await stage.source.start() == nil)
      stage.source.stop()
      first.release()
      #expect(try await stage.stopped() == nil)
      #expect(stage.actors.count == 1)
    }
  }

  @Test func stoppedItCanBeStartedForAPreviewAlone() async throws {
    try await staged { stage in
      _ = try await stage.actor(0)
      stage.source.stop()
      _ = try await stage.stopped()
      stage.source.preview()
      _ = try await stage.actor(1)
      guard case .preview = stage.source.activity else {
        Issue.record("\(stage.source.activity)")
        return
      }
    }
  }

  @Test func whatEndsByItselfSaysWhyAndCanBeStartedAgain() async throws {
    try await staged { stage in
      let first = try await stage.actor(0)
      first.stop(.failed("no such file"))
      #expect(try await stage.stopped() == .failed("no such file"))
      #expect(await stage.source.start() == nil)
      _ = try await stage.actor(1)
    }
  }

  @Test func stoppedBeforeItHasBegunItNeverBegins() async throws {
    let stage = try Stage()
    stage.source.stop()
    async let running: Void = stage.source.run()
    try await Task.sleep(for: .milliseconds(20))
    #expect(stage.actors.isEmpty)
    stage.source.shutDown()
    await running
  }
}
