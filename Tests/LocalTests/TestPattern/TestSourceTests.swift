import Base
import FMP4
@testable import Local
import Logging
import Publishing
import Support
import Synchronization
import Testing

@Suite struct TestSourceTests {
  /// Admits or refuses, and keeps what it hears.
  private final class TestGate: PublishGate, MediaSink {
    private struct State {
      var request: PublishRequest?
      var events: [MediaEvent] = []
      var closeAfter = Int.max
    }
    private let state: Mutex<State>
    private let refusal: PublishRefusal?

    init(closeAfter: Int = .max, refusal: PublishRefusal? = nil) {
      state = Mutex(State(closeAfter: closeAfter))
      self.refusal = refusal
    }

    func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
      if let refusal { throw refusal }
      state.withLock { $0.request = request }
      return self
    }

    func warn(_: PublicationWarning) {}
    func withdraw(_: PublicationWarning) {}

    func receive(_ event: MediaEvent) -> SinkVerdict {
      state.withLock { state in
        state.events.append(event)
        return state.events.count >= state.closeAfter ? .closed(.replaced) : .accepted
      }
    }

    var request: PublishRequest? { state.withLock { $0.request } }
    var events: [MediaEvent] { state.withLock { $0.events } }
    var frames: Int {
      events.count { if case .sample(let sample) = $0 { sample.track == .video } else { false } }
    }
  }

  private func source(
    _ gate: TestGate, pacing: TestSourceSettings.Pacing = .unpaced, limit: Int64? = nil,
    clock: SteadyClock = SteadyClock(ClockReading(wall: 1_795_262_584_400_000_000, monotonic: 0)) { 0 }
  ) throws -> TestSource {
    let settings = TestSourceSettings(
      width: 320, height: 180, videoBitRate: 300_000, pacing: pacing, frameLimit: limit)
    return TestSource(
      name: try #require(StreamName("demo")), settings: settings, gate: gate, clock: clock,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
  }

  private func isEnd(_ event: MediaEvent?, _ reason: EndReason) -> Bool {
    if case .end(let given)? = event { given == reason } else { false }
  }

  @Test func itPublishesLikeAnyOtherButIsNeverRecorded() async throws {
    let gate = TestGate()
    try await source(gate, limit: 45).run()
    let request = try #require(gate.request)
    #expect(request.stream.description == "demo" && request.protocolName == "test")
    #expect(request.recording == .never)
    guard case .clock(let anchor)? = gate.events.first, case .tracks(let tracks) = gate.events[1] else {
      Issue.record("the clock and the tracks come first")
      return
    }
    #expect(anchor.wallTime == 1_795_262_584_400_000_000)
    #expect(tracks.map(\.timescale) == [30000, 48000])
    #expect(tracks.map(\.frameDuration) == [1000, nil])
    #expect(gate.frames == 45)
    #expect(isEnd(gate.events.last, .finished))
    let decoded = try DecodedTestMedia(events: gate.events, width: 320)
    #expect(decoded.frames.map(\.number) == Array(0..<45))
  }

  @Test func nothingIsSaidToASinkThatHasClosed() async throws {
    let gate = TestGate(closeAfter: 20)
    try await source(gate).run()
    #expect(gate.events.count == 20)
    #expect(!gate.events.contains { isEnd($0, .finished) || isEnd($0, .shutdown) })
  }

  @Test func aRefusedSourceEnds() async throws {
    let gate = TestGate(refusal: .shuttingDown)
    let reason = try await source(gate).run()
    #expect(reason == .failed(PublishRefusal.shuttingDown.description))
    #expect(gate.events.isEmpty)
  }

  @Test func stoppingIsToldWithItsReason() async throws {
    let gate = TestGate()
    let source = try source(gate, pacing: .realTime, clock: .system())
    async let running = source.run()
    while gate.frames < 3 { try await Task.sleep(for: .milliseconds(10)) }
    source.stop(.shutdown)
    #expect(await running == .shutdown)
    #expect(isEnd(gate.events.last, .shutdown))
  }

  @Test func cancellingTheTaskStopsIt() async throws {
    let gate = TestGate()
    let source = try source(gate, pacing: .realTime, clock: .system())
    let running = Task { _ = await source.run() }
    while gate.frames < 3 { try await Task.sleep(for: .milliseconds(10)) }
    running.cancel()
    await running.value
    #expect(isEnd(gate.events.last, .shutdown))
  }

  @Test func anEvictedSourceFallsSilent() async throws {
    let gate = TestGate()
    let source = try source(gate, pacing: .realTime, clock: .system())
    async let running = source.run()
    while gate.frames < 3 { try await Task.sleep(for: .milliseconds(10)) }
    try #require(gate.request).onEviction(.replaced)
    #expect(await running == .replaced)
    guard case .sample? = gate.events.last else {
      Issue.record("it spoke on: \(String(describing: gate.events.last))")
      return
    }
  }

  @Test func aKeyFrameThatIsAskedForIsMade() async throws {
    let gate = TestGate()
    let source = try source(gate, pacing: .realTime, clock: .system())
    async let running = source.run()
    while gate.frames < 3 { try await Task.sleep(for: .milliseconds(10)) }
    #expect(source.change(.keyFrame) == nil)
    // The next one by itself is the 60th.
    while gate.frames < 10 { try await Task.sleep(for: .milliseconds(10)) }
    #expect(source.change(.controls([])) == .isNoCapture)
    source.stop(.finished)
    #expect(await running == .finished)
    #expect(source.change(.keyFrame) == .hasEnded)
    let keyFrames = gate.events.count {
      if case .sample(let sample) = $0 { sample.track == .video && sample.isSync } else { false }
    }
    #expect(keyFrames == 2)
  }

  @Test func framesComeInRealTime() async throws {
    let gate = TestGate()
    let start = ContinuousClock.now
    try await source(gate, pacing: .realTime, limit: 16, clock: .system()).run()
    #expect(ContinuousClock.now - start >= .milliseconds(499))
    #expect(gate.frames == 16)
  }
}
