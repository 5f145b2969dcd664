import FMP4
@testable import LocalSources
import Publishing
import Support
import Synchronization
import Testing

@Suite struct SourceOutputTests {
  /// The registry's side: who was let in, and what they said.
  private final class TestGate: PublishGate, MediaSink {
    private struct State {
      var admitted = 0
      var refusal: PublishRefusal?
      var requested: PublishRequest.RecordingMode?
      var events: [MediaEvent] = []
      var captions: [CaptionServices] = []
      var held: [Int] = []
    }
    /// Of what is held while nothing is on air.
    final class Account: HeldBytes {
      let bytes = Atomic(0)
      let mostAtStart = 1 << 20
      func hold(_ bytes: Int) { self.bytes.store(bytes, ordering: .relaxed) }
    }
    let account = Account()
    private let state = Mutex(State())

    func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
      if let refusal = state.withLock({ $0.refusal }) { throw refusal }
      state.withLock { state in
        state.admitted += 1
        state.requested = request.recording
      }
      return self
    }

    func refuse(_ refusal: PublishRefusal) { state.withLock { $0.refusal = refusal } }
    func receive(_ event: MediaEvent) -> SinkVerdict {
      state.withLock { $0.events.append(event) }
      return .accepted
    }
    func carries(_ event: InBandEvent) {
      if case .captions(_, let services) = event { state.withLock { $0.captions.append(services) } }
    }
    func account(of stream: StreamName, end: @escaping @Sendable (_ reason: String) -> Void) -> (any HeldBytes)? {
      account
    }
    func holds(_ bytes: Int) { state.withLock { $0.held.append(bytes) } }
    func warn(_: PublicationWarning) {}
    func withdraw(_: PublicationWarning) {}

    var admitted: Int { state.withLock { $0.admitted } }
    /// Of the one that was let in last.
    var requested: PublishRequest.RecordingMode? { state.withLock { $0.requested } }
    var events: [MediaEvent] { state.withLock { $0.events } }
    var samples: [Sample] { events.compactMap { if case .sample(let sample) = $0 { sample } else { nil } } }
    var captions: [CaptionServices] { state.withLock { $0.captions } }
    var held: [Int] { state.withLock { $0.held } }
    var hasEnded: Bool { events.contains { if case .end(.finished) = $0 { true } else { false } } }
  }

  private static let wall: WallTime = 1_795_262_584_000_000_000

  private let gate = TestGate()
  private let output: SourceOutput
  private let keyFramesAskedFor = Counter()

  private final class Counter: Sendable {
    let value = Atomic(0)
  }

  init() { output = SourceOutput(gate: gate) }

  /// A source begins.
  private func run() async throws -> any MediaSink {
    let sink = try await output.admit(
      PublishRequest(
        stream: try #require(StreamName("cam")), key: nil, protocolName: "capture", remoteAddress: "this server",
        origin: .server,
        onKeyFrameWanted: { [keyFramesAskedFor] in _ = keyFramesAskedFor.value.add(1, ordering: .relaxed) }
      ) { _ in })
    _ = sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: Self.wall)))
    _ = sink.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    return sink
  }

  private var film: [Sample] { SyntheticMedia.interleaved(seconds: 4) }

  @Test func onAirEverythingGoesOnAsItIs() async throws {
    let sink = try await run()
    for sample in film { #expect(sink.receive(.sample(sample)) == .accepted) }
    #expect(gate.admitted == 1 && gate.samples.map(\.decodeTime) == film.map(\.decodeTime))
    #expect(output.keyFrame?.sample == film.last { $0.track == .video && $0.isSync }?.payload)
  }

  @Test func offAirNoAdmissionIsAskedForAndTheKeyFrameCanBeSeen() async throws {
    output.end()
    let sink = try await run()
    for sample in film { #expect(sink.receive(.sample(sample)) == .accepted) }
    #expect(gate.admitted == 0 && gate.events.isEmpty && !output.isOnAir)
    #expect(output.keyFrame?.sample == film.last { $0.track == .video && $0.isSync }?.payload)
    output.finishRun(.finished)
    #expect(output.keyFrame == nil)
  }

  @Test func whatIsHeldCountsOnAirAndOff() async throws {
    output.end()
    let sink = try await run()
    sink.holds(100)
    #expect(gate.account.bytes.load(ordering: .relaxed) == 100 && gate.held.isEmpty)
    #expect(sink.mostHeldAtStart == 1 << 20)
    #expect(await output.begin() == nil)
    for sample in film { _ = sink.receive(.sample(sample)) }
    sink.holds(200)
    #expect(gate.account.bytes.load(ordering: .relaxed) == 0 && gate.held == [200])
  }

  @Test func putOnAirItBeginsWithTheNextKeyFrameAtZero() async throws {
    output.end()
    let sink = try await run()
    let (before, after) = (film.prefix(50), film.dropFirst(50))
    for sample in before { _ = sink.receive(.sample(sample)) }
    #expect(await output.begin() == nil)
    #expect(keyFramesAskedFor.value.load(ordering: .relaxed) == 1)
    for sample in after { _ = sink.receive(.sample(sample)) }
    let first = try #require(after.firstIndex { $0.track == .video && $0.isSync })
    let start = MediaTime(ticks: film[first].decodeTime, timescale: try SyntheticMedia.video().timescale)
    guard case .clock(let anchor)? = gate.events.first, case .tracks(let tracks)? = gate.events.dropFirst().first else {
      Issue.record("the clock and the tracks come first")
      return
    }
    #expect(anchor.mediaTime == .zero && anchor.wallTime == Self.wall + start.nanoseconds)
    #expect(tracks.count == 2)
    var expected: [Sample] = []
    for var sample in film[first...] {
      let timescale = try #require(tracks.first { $0.id == sample.track }).timescale
      sample.decodeTime -= start.rescaled(to: timescale)
      if sample.decodeTime >= 0 { expected.append(sample) }
    }
    #expect(gate.samples.map(\.decodeTime) == expected.map(\.decodeTime))
    #expect(gate.samples.map(\.payload) == expected.map(\.payload))
    #expect(gate.samples.first?.decodeTime == 0 && gate.samples.first?.isSync == true)
  }

  @Test func `What joins late, on air or as a recording, is told of captions that were found before`() async throws {
    var services = CaptionServices()
    services.insert(.channel(1))
    output.end()
    let sink = try await run()
    sink.carries(.captions(.video, services))
    let recording = TestGate()
    output.record(recording)
    #expect(await output.begin() == nil)
    #expect(gate.captions.isEmpty && recording.captions.isEmpty)
    for sample in film { _ = sink.receive(.sample(sample)) }
    #expect(gate.captions == [services] && recording.captions == [services])
    services.insert(.channel(2))
    sink.carries(.captions(.video, services))
    #expect(gate.captions.count == 2 && recording.captions.last == services)
  }

  @Test func takenOffTheAirItsStreamEndsAndItGoesOn() async throws {
    let sink = try await run()
    for sample in film.prefix(20) { _ = sink.receive(.sample(sample)) }
    output.end()
    #expect(gate.hasEnded)
    let told = gate.events.count
    for sample in film.dropFirst(20) { #expect(sink.receive(.sample(sample)) == .accepted) }
    #expect(sink.receive(.end(.finished)) == .accepted)
    #expect(gate.events.count == told)
  }

  @Test func takenOffBeforeItHasBegunItNeverWas() async throws {
    output.end()
    let sink = try await run()
    #expect(await output.begin() == nil)
    output.end()
    for sample in film { _ = sink.receive(.sample(sample)) }
    #expect(gate.samples.isEmpty && gate.hasEnded)
  }

  @Test func whereAnotherOneHasTheNameItStaysOffAir() async throws {
    output.end()
    let sink = try await run()
    let refusal = PublishRefusal.busy(stream: try #require(StreamName("cam")), holder: "10.0.0.1:5")
    gate.refuse(refusal)
    #expect(await output.begin() == refusal)
    for sample in film { #expect(sink.receive(.sample(sample)) == .accepted) }
    #expect(gate.events.isEmpty && !output.isOnAir)
  }

  @Test func audioAloneBeginsAtOnce() async throws {
    output.end()
    let sink = try await run()
    _ = sink.receive(.tracks([try SyntheticMedia.audio()]))
    #expect(await output.begin() == nil)
    for sample in film where sample.track == .audio { _ = sink.receive(.sample(sample)) }
    #expect(gate.samples.count == film.count { $0.track == .audio } && output.keyFrame == nil)
  }

  @Test func whatDoesNotRunAsksForNoAdmission() async throws {
    #expect(await output.begin() == nil)
    _ = try await run()
    output.finishRun(.finished)
    #expect(await output.begin() == nil)
    #expect(gate.admitted == 1, "the run's own")
  }

  // MARK: Recording

  @Test func whatIsRecordedHearsEverythingOnAirAndOff() async throws {
    output.end()
    let sink = try await run()
    let take = TestGate()
    for sample in film.prefix(10) { _ = sink.receive(.sample(sample)) }
    output.record(take)
    #expect(keyFramesAskedFor.value.load(ordering: .relaxed) == 1)
    let first = try #require(film.dropFirst(10).firstIndex { $0.track == .video && $0.isSync })
    let heard = film.count - first
    for (index, sample) in film.dropFirst(10).enumerated() {
      if index == heard / 3 { #expect(await output.begin() == nil) }
      if index == heard * 2 / 3 { output.end() }
      #expect(sink.receive(.sample(sample)) == .accepted)
    }
    #expect(take.samples.first?.decodeTime == 0 && take.samples.first?.isSync == true)
    #expect(take.samples.map(\.payload) == film.suffix(take.samples.count).map(\.payload))
    #expect(take.samples.count >= heard - 1 && !take.hasEnded, "but for audio of before its first frame")
    #expect(gate.hasEnded && gate.requested == .whenAsked, "it is not recorded once more with its stream")
    output.finishRun(.finished)
    #expect(take.hasEnded)
  }

  @Test func theRecordingThatLeftHearsNothingMoreAndTheStreamGoesOn() async throws {
    let sink = try await run()
    let take = TestGate()
    #expect(gate.requested == .asConfigured)
    output.record(take)
    for sample in film { _ = sink.receive(.sample(sample)) }
    let heard = take.events.count
    output.leave(take)
    for sample in film { #expect(sink.receive(.sample(sample)) == .accepted) }
    #expect(heard > 0 && take.events.count == heard && gate.samples.count == 2 * film.count)
    output.finishRun(.finished)
    #expect(!take.hasEnded)
  }

  @Test func aRecordingIsThereBeforeItsSourceHasBegun() async throws {
    let take = TestGate()
    output.record(take)
    let sink = try await run()
    for sample in film { _ = sink.receive(.sample(sample)) }
    #expect(take.samples.map(\.payload) == film.map(\.payload) && gate.samples.count == film.count)
  }
}
