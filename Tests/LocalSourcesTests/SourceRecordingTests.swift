import Base
import FMP4
import Local
@testable import LocalSources
import Logging
import NIOCore
import NIOPosix
import Publishing
@testable import Recording
@testable import RecordingFiles
import RecordingSupport
import Streams
import Support
import Synchronization
import Testing

/// Recordings of the server's own sources: begun and ended by themselves, whatever is on air.
@Suite(.timeLimit(.minutes(1))) struct SourceRecordingTests {
  /// A source that gives what the test tells it to.
  private final class Actor: MediaSource {
    let name: StreamName
    private let gate: any PublishGate
    private let state = Mutex<(sink: (any MediaSink)?, ending: EndReason?)>((nil, nil))

    init(_ name: StreamName, gate: any PublishGate) {
      self.name = name
      self.gate = gate
    }

    func run() async -> EndReason {
      let request = PublishRequest(
        stream: name, key: nil, protocolName: "capture", remoteAddress: "this server", origin: .server
      ) { [weak self] reason in self?.stop(reason) }
      guard let sink = try? await gate.admit(request) else { return .failed("refused") }
      _ = sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: RecordingHarness.start)))
      _ = sink.receive(.tracks([(try? SyntheticMedia.video()), (try? SyntheticMedia.audio())].compactMap(\.self)))
      state.withLock { $0.sink = sink }
      while true {
        if let reason = state.withLock({ $0.ending }) {
          _ = sink.receive(.end(reason))
          return reason
        }
        try? await Task.sleep(for: .milliseconds(1))
      }
    }

    func stop(_ reason: EndReason) { state.withLock { if $0.ending == nil { $0.ending = reason } } }
    func change(_ change: CaptureChange) -> CaptureRefusal? { nil }
    var status: CaptureStatus? { nil }
    var settings: CaptureSettings? { nil }
    var sink: (any MediaSink)? { state.withLock { $0.sink } }
  }

  private final class Scene: Sendable {
    let harness: TemporaryFolder
    let library: RecordingLibrary
    let registry: StreamRegistry
    let archive: RecordingArchive
    let events = RecordedEvents()
    let source: LocalSource
    let recordings: SourceRecordings
    private let actors: Actors

    private final class Actors: Sendable {
      let all = Mutex<[Actor]>([])
    }

    init(_ start: RecordingPolicy.Start = .automatic, recording: PublishRequest.RecordingMode = .asConfigured) throws {
      let name = try #require(StreamName("cam"))
      let folder = try TemporaryFolder()
      harness = folder
      let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
      archive = RecordingArchive(folder: folder.path)
      let library = RecordingLibrary(
        folder: folder.path, keepFree: 0, policy: { _ in RecordingPolicy(start: start) }, threads: .singleton,
        queues: RecordingQueues(writers: 1),
        archive: archive, logger: logger)
      self.library = library
      registry = StreamRegistry(
        settings: { _ in StreamSettings() }, clock: .system(), logger: logger
      ) { stream, epoch, requested, _ in
        requested == .asConfigured ? library.makeRecorder(stream: stream, epoch: epoch).map { [$0] } ?? [] : []
      }
      library.follow(registry)
      library.observe(events)
      let actors = Actors()
      self.actors = actors
      source = LocalSource(name: name, kind: "capture", recording: recording, gate: registry) { _, gate in
        let actor = Actor(name, gate: gate)
        actors.all.withLock { $0.append(actor) }
        return actor
      }
      recordings = SourceRecordings(library: library, settings: { _ in StreamSettings() }, logger: logger)
    }

    /// The run of that number, once it publishes.
    func sink(_ number: Int = 0) async throws -> any MediaSink {
      while true {
        let actors = actors.all.withLock { $0 }
        if actors.count > number, let sink = actors[number].sink { return sink }
        try await Task.sleep(for: .milliseconds(1))
      }
    }

    func send(_ frames: Range<Int>, to sink: any MediaSink) {
      let (start, end) = (frames.lowerBound, frames.upperBound)
      for sample in SyntheticMedia.interleaved(seconds: 20) {
        let frame = sample.track == .video ? sample.decodeTime / 1000 : sample.decodeTime * 30 / 48_000
        if frame >= start, frame < end { _ = sink.receive(.sample(sample)) }
      }
    }

    func perform(_ action: SourceRecordings.Action) -> RecordingAnswer { recordings.perform(action, on: source) }

    func wait(_ isThere: (RecordingState?) -> Bool) async throws {
      for _ in 0..<1000 {
        if isThere(source.recording?.recorder.state) { return }
        try await Task.sleep(for: .milliseconds(10))
      }
      Issue.record("\(source.recording?.recorder.state as Any)")
    }

    func waitForEnd() async throws {
      try await wait { if case .completed? = $0 { true } else { false } }
    }

    /// Samples of the only file, one number a track.
    var samples: [Int] {
      get throws {
        let files = harness.files.filter { $0.hasSuffix(".mp4") }
        #expect(files.count == 1)
        return try RecordingHarness(harness).sampleCounts(try #require(files.first))
      }
    }
  }

  private enum Place { case onAir, offAir }

  /// Runs the source beside the test, from its start on there.
  private func staged(
    _ place: Place = .offAir, _ start: RecordingPolicy.Start = .automatic,
    recording: PublishRequest.RecordingMode = .asConfigured, _ test: (Scene) async throws -> Void
  ) async throws {
    let scene = try Scene(start, recording: recording)
    if place == .offAir { scene.source.preview() }
    async let running: Void = scene.source.run()
    defer { scene.source.shutDown() }
    try await test(scene)
    scene.source.shutDown()
    await running
  }

  @Test func offTheAirItBeginsWithAKeyFrameAndEndsWhenAsked() async throws {
    try await staged { scene in
      let sink = try await scene.sink()
      scene.send(0..<50, to: sink)
      #expect(scene.source.recording == nil)
      #expect(scene.perform(.start()) == .done)
      #expect(scene.perform(.start()) == .refused(.alreadyRecording))
      scene.send(50..<200, to: sink)
      #expect(scene.perform(.stop) == .done)
      #expect(scene.perform(.stop) == .refused(.notRecording))
      #expect(scene.perform(.cancel) == .refused(.notRecording))
      scene.send(200..<300, to: sink)
      try await scene.waitForEnd()
      // From frame 60, two seconds after the start, to the one before the end of which nothing was known.
      #expect(scene.harness.files == ["cam/20261121T072412Z.mp4"])
      #expect(try scene.samples[0] == 140)
      #expect(scene.events.steps == [.started, .stopped(.asked), .stored])
      #expect(scene.registry.stream(scene.source.name) == nil, "viewers were offered nothing")

      #expect(scene.perform(.start()) == .done, "and once more")
      scene.send(300..<400, to: sink)
      #expect(scene.perform(.cancel) == .done)
      try await scene.wait { $0 == .cancelled }
      #expect(scene.harness.files.count == 1)
    }
  }

  @Test func goingOnAirAndOffAgainCutsNothingAndRecordsNothingTwice() async throws {
    try await staged { scene in
      let sink = try await scene.sink()
      #expect(scene.perform(.start()) == .done)
      scene.send(0..<100, to: sink)
      #expect(await scene.source.start() == nil)
      scene.send(100..<250, to: sink)
      #expect(scene.registry.stream(scene.source.name)?.phase == .live)
      #expect(!scene.library.isRecording(scene.source.name), "it is being recorded already")
      scene.source.preview()
      scene.send(250..<400, to: sink)
      #expect(scene.registry.stream(scene.source.name)?.phase == .ended)
      #expect(scene.perform(.stop) == .done)
      try await scene.waitForEnd()
      #expect(try scene.samples == [400, 625])
      #expect(scene.events.steps == [.started, .stopped(.asked), .stored])
      #expect(scene.events.all.allSatisfy { $0.facts.gaps.isEmpty })
    }
  }

  @Test func itGoesOnWhenItsStreamIsTakenOffTheAir() async throws {
    try await staged(.onAir, .manual) { scene in
      let sink = try await scene.sink()
      scene.send(0..<90, to: sink)
      #expect(scene.perform(.start()) == .done)
      scene.send(90..<200, to: sink)
      scene.source.preview()
      scene.send(200..<300, to: sink)
      #expect(scene.perform(.stop) == .done)
      try await scene.waitForEnd()
      #expect(try scene.samples[0] == 180)
    }
  }

  @Test func itEndsWithItsSource() async throws {
    try await staged { scene in
      let sink = try await scene.sink()
      #expect(scene.perform(.start()) == .done)
      scene.send(0..<100, to: sink)
      scene.source.stop()
      try await scene.waitForEnd()
      #expect(try scene.samples[0] == 100)
      while true {
        if case .stopped = scene.source.activity { break }
        try await Task.sleep(for: .milliseconds(1))
      }
      scene.source.preview()
      let again = try await scene.sink(1)
      scene.send(0..<100, to: again)
      try await Task.sleep(for: .milliseconds(20))
      #expect(scene.harness.files.count == 1, "it does not begin again by itself")
    }
  }

  @Test func aSourceThatIsStoppedIsStartedForItOffTheAir() async throws {
    try await staged(.onAir, .manual) { scene in
      let sink = try await scene.sink()
      scene.send(0..<50, to: sink)
      scene.source.stop()
      while true {
        if case .stopped = scene.source.activity { break }
        try await Task.sleep(for: .milliseconds(1))
      }
      #expect(scene.perform(.start()) == .done)
      #expect(scene.perform(.start()) == .refused(.alreadyRecording))
      let again = try await scene.sink(1)
      scene.send(0..<100, to: again)
      #expect(scene.registry.stream(scene.source.name)?.phase == .ended, "viewers are offered nothing")
      if case .preview = scene.source.activity {} else { Issue.record("\(scene.source.activity)") }
      #expect(scene.perform(.stop) == .done)
      try await scene.waitForEnd()
      #expect(try scene.samples[0] == 100)
    }
  }

  @Test func itIsToldOnceItIsWhatItWasAskedToBe() async throws {
    try await staged { scene in
      let loop = MultiThreadedEventLoopGroup.singleton.next()
      let sink = try await scene.sink()
      #expect(scene.perform(.start()) == .done)
      let recorder = try #require(scene.source.recording?.recorder)
      // Nothing comes: the answer does not wait for ever.
      try await recorder.wait(until: \.isSettled, on: loop, patience: .milliseconds(20)).get()
      #expect(recorder.state == .idle)
      let begun = recorder.wait(until: \.isSettled, on: loop, patience: .seconds(20))
      scene.send(0..<100, to: sink)
      try await begun.get()
      if case .running = recorder.state {} else { Issue.record("\(recorder.state)") }
      #expect(scene.perform(.cancel) == .done)
      try await recorder.wait(until: \.isSettled, on: loop, patience: .seconds(20)).get()
      #expect(recorder.state == .cancelled)
    }
  }

  @Test func itTellsWhyItsSourceEndedBeforeTheSourceDoes() async throws {
    try await staged { scene in
      let sink = try await scene.sink()
      #expect(scene.perform(.start()) == .done)
      let recording = try #require(scene.source.recording)
      #expect(recording.endReason == nil)
      _ = sink.receive(.end(.failed("no media")))
      #expect(recording.endReason == .failed("no media") && !recording.isActive)
      if case .preview = scene.source.activity {} else { Issue.record("\(scene.source.activity)") }
    }
  }

  @Test func itHasNoSuchReasonWhereSomebodyElseEndedIt() async throws {
    try await staged { scene in
      let sink = try await scene.sink()
      #expect(scene.perform(.start()) == .done)
      #expect(scene.perform(.stop) == .done)
      _ = sink.receive(.end(.finished))
      #expect(scene.source.recording?.endReason == nil)
    }
  }

  @Test func whatIsRecordedWithItsStreamIsNotRecordedTwice() async throws {
    try await staged(.onAir) { scene in
      let sink = try await scene.sink()
      scene.send(0..<100, to: sink)
      #expect(scene.perform(.start()) == .refused(.alreadyRecording))
      #expect(scene.library.stop(scene.source.name) == .done)
      #expect(scene.perform(.start()) == .done)
    }
  }

  @Test func whatIsNeverRecordedIsNotRecordedOffTheAirEither() async throws {
    try await staged(recording: .never) { scene in
      _ = try await scene.sink()
      #expect(scene.perform(.start()) == .refused(.neverRecorded))
      #expect(scene.perform(.stop) == .refused(.notRecording))
    }
  }

  /// It may hold what was never on air.
  @Test func itIsNeitherListedNorServedBeforeItIsStored() async throws {
    try await staged { scene in
      let sink = try await scene.sink()
      #expect(scene.perform(.start()) == .done)
      scene.send(0..<200, to: sink)
      try await scene.wait { if case .running(let progress)? = $0 { progress.seconds > 4 } else { false } }
      let loop = MultiThreadedEventLoopGroup.singleton.next()
      let query = CatalogueQuery()
      #expect(try await scene.library.catalogue.list(query, on: loop).get().entries.isEmpty)
      #expect(try scene.archive.open(scene.source.name, "20261121T072410Z") == nil)
      #expect(scene.library.state(of: scene.source.name) == nil)
      #expect(scene.perform(.stop) == .done)
      try await scene.waitForEnd()
      for _ in 0..<1000 {
        if try await scene.library.catalogue.list(query, on: loop).get().entries.count == 1 { break }
        try await Task.sleep(for: .milliseconds(10))
      }
      #expect(try await scene.library.catalogue.list(query, on: loop).get().entries.map(\.state) == [.completed])
      #expect(try scene.archive.open(scene.source.name, "20261121T072410Z")?.isOver == true)
    }
  }

  @Test func aServerThatStopsFinishesIt() async throws {
    try await staged { scene in
      let sink = try await scene.sink()
      #expect(scene.perform(.start()) == .done)
      scene.send(0..<100, to: sink)
      scene.source.shutDown()
      while scene.source.recording?.recorder.isActive == true { try await Task.sleep(for: .milliseconds(1)) }
      await scene.library.shutDown()
      #expect(try scene.samples[0] == 100)
    }
  }
}
