import Base
@testable import Control
import FMP4
import Logging
import NIOCore
import Publishing
@testable import Streams
import StreamSupport
import Support
import Synchronization
import Testing

/// A publication of the server's own in the place of a publisher that is away.
@Suite struct FallbackTests {
  /// Notes what it gets, in the order of the stream.
  private final class Sink: FragmentSink {
    let endsWithPublication: Bool
    let leavesOutStandIns: Bool
    private let log = Mutex<(widths: [Int], fragments: Int, samples: Int, breaks: Int, ends: Int)>(([], 0, 0, 0, 0))
    var seen: (widths: [Int], fragments: Int, samples: Int, breaks: Int, ends: Int) { log.withLock { $0 } }

    init(isRecording: Bool) { (endsWithPublication, leavesOutStandIns) = (isRecording, isRecording) }

    func receive(_ event: StoredEvent) {
      log.withLock { log in
        switch event {
        case .initialization(let segment): log.widths.append(segment.tracks.first?.codec.displaySize?.width ?? 0)
        case .fragment(let published):
          log.fragments += 1
          log.samples += published.fragment.runs.reduce(0) { $0 + $1.samples.count }
        case .discontinuity: log.breaks += 1
        case .end: log.ends += 1
        case .segmentEnd, .clock, .redated: break
        }
      }
    }
  }

  /// A fallback whose media a test gives by hand.
  private final class Hand: FallbackSources, FallbackRun {
    private let state = Mutex<(begun: [Fallback], stops: Int, gate: (any PublishGate)?)>(([], 0, nil))
    let canBegin = Atomic(true)
    var begun: [Fallback] { state.withLock { $0.begun } }
    var stops: Int { state.withLock { $0.stops } }

    func begin(
      _ fallback: Fallback, of stream: StreamName, through gate: any PublishGate
    ) -> (any FallbackRun)? {
      guard canBegin.load(ordering: .relaxed) else { return nil }
      state.withLock { state in
        state.begun.append(fallback)
        state.gate = gate
      }
      return self
    }

    func stop() { state.withLock { $0.stops += 1 } }

    func sink(_ name: StreamName) async throws -> any MediaSink {
      let gate = try #require(state.withLock { $0.gate })
      return try await gate.admit(
        PublishRequest(stream: name, key: nil, protocolName: "test", remoteAddress: "", origin: .server) { _ in })
    }
  }

  private let name: StreamName
  private let hands = ManualClock()
  private let settings = Reloadable(StreamSettings())
  private let made = Reloadable<[Sink]>([])
  private let hand = Hand()

  init() throws { name = try #require(StreamName("cam")) }

  private func registry(_ end: StreamSettings.EndRule = .never) -> StreamRegistry {
    settings.now = StreamSettings { ($0.end, $0.isOfOneName, $0.fallback) = (end, true, .test) }
    let registry = StreamRegistry(
      settings: { [settings] _ in settings.now }, clock: hands.clock,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { [made] _, _, requested, isNew in
      let sinks = (isNew ? [false] : []) + (requested == .asConfigured ? [true] : [])
      let new = sinks.map(Sink.init)
      made.now += new
      return new
    }
    registry.use(hand)
    return registry
  }

  private func admit(_ registry: StreamRegistry) async throws -> any MediaSink {
    try await registry.admit(
      PublishRequest(stream: name, key: nil, protocolName: "RTMP", remoteAddress: "10.0.0.1:5", host: "10.0.0.1") { _ in
      })
  }

  /// Gives so many seconds of media, from a time of its own on, as if they came at once.
  private func give(_ seconds: Int, to sink: any MediaSink, after skipped: Int = 0, end: EndReason? = nil) throws {
    if skipped == 0 {
      _ = sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: hands.clock.wallTime)))
      _ = sink.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    }
    for sample in SyntheticMedia.interleaved(seconds: skipped + seconds) {
      let scale: Int64 = sample.track == .video ? 30_000 : 48_000
      guard sample.decodeTime >= Int64(skipped) * scale else { continue }
      #expect(sink.receive(.sample(sample)) == .accepted)
    }
    if let end { #expect(sink.receive(.end(end)) == .accepted) }
  }

  private func pass(_ registry: StreamRegistry, milliseconds: Int = 500) {
    hands.advance(seconds: Double(milliseconds) / 1000)
    registry.tend()
  }

  @Test func itTakesThePlaceOfALostPublisherAndGivesItBackAtAKeyFrame() async throws {
    let registry = registry()
    try give(4, to: try await admit(registry), end: .connectionLost("reset"))
    let stream = try #require(registry.stream(name))
    #expect(stream.phase == .reconnecting && stream.status.onAir == nil && hand.begun.isEmpty)
    let (epoch, breaks) = (stream.status.epoch, stream.epoch.window.discontinuities)
    pass(registry)
    #expect(hand.begun == [.test])
    let standIn = try await hand.sink(name)
    try give(4, to: standIn)
    #expect(stream.phase == .live && stream.status.onAir == .fallback)
    // A publisher is back, and its first pictures cannot be decoded.
    let back = try await admit(registry)
    _ = back.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: hands.clock.wallTime)))
    _ = back.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    let samples = SyntheticMedia.interleaved(seconds: 4)
    let first = try #require(samples.firstIndex { $0.track == .video && $0.isSync })
    let next = try #require(samples.indices.first { $0 > first && samples[$0].track == .video && samples[$0].isSync })
    for sample in samples[(first + 1)..<next] { #expect(back.receive(.sample(sample)) == .accepted) }
    #expect(stream.status.onAir == .fallback && hand.stops == 0)
    for sample in samples[next...] { #expect(back.receive(.sample(sample)) == .accepted) }
    #expect(stream.status.onAir == .publisher && stream.phase == .live && hand.stops == 1)
    #expect(standIn.receive(.progress(.zero)) == .closed(.replaced))
    #expect(stream.status.epoch == epoch)
    // To the fallback, and back.
    #expect(stream.epoch.window.discontinuities == breaks + 2)
    let early = stream.status.counters.intake
    #expect(early.earlyFrames > 0 && early.lostFrames == 0)
    // What was sent is taken or came early: 4 s, and all but the first key frame of another 4 s.
    #expect(early.frames + early.earlyFrames == 120 + samples[(first + 1)...].count { $0.track == .video })
    #expect(early.audioFrames + early.earlyAudioFrames == 187 + samples[(first + 1)...].count { $0.track == .audio })
  }

  @Test func whatIsOnAirContinuesWithoutHoleOrOverlap() async throws {
    let registry = registry()
    for _ in 0..<5 {
      try give(4, to: try await admit(registry), end: .connectionLost("reset"))
      pass(registry)
      try give(2, to: try await hand.sink(name))
      hands.advance(seconds: 6)
    }
    let stream = try #require(registry.stream(name))
    let segments = stream.epoch.window.segments.filter { !$0.isOutage }
    for (one, next) in zip(segments, segments.dropFirst()) where one.isComplete {
      let gap = (next.start - (one.start + one.duration)).seconds
      #expect(abs(gap) < 0.03, "\(one.sequenceNumber): \(gap)")
    }
  }

  @Test func aRecordingLeavesItOut() async throws {
    let registry = registry()
    try give(4, to: try await admit(registry), end: .connectionLost("reset"))
    let (folder, recording) = (made.now[0], made.now[1])
    let before = recording.seen
    pass(registry)
    try give(4, to: try await hand.sink(name))
    #expect(recording.seen.fragments == before.fragments && recording.seen.ends == 0)
    #expect(folder.seen.fragments > before.fragments)
    try give(4, to: try await admit(registry), end: .finished)
    #expect(recording.seen.samples == 2 * before.samples && recording.seen.ends == 1)
    #expect(recording.seen.breaks > before.breaks, "what is missing is a break")
  }

  @Test func aPublisherThatReturnsAtOnceMeetsNoFallback() async throws {
    let registry = registry()
    try give(4, to: try await admit(registry), end: .connectionLost("reset"))
    pass(registry, milliseconds: 200)
    #expect(hand.begun.isEmpty)
    try give(4, to: try await admit(registry))
    pass(registry)
    #expect(hand.begun.isEmpty)
  }

  @Test func oneThatReturnsBeforeTheFirstPictureOfTheFallbackKeepsItsPlace() async throws {
    let registry = registry()
    try give(4, to: try await admit(registry), end: .connectionLost("reset"))
    pass(registry)
    hands.advance(seconds: 0.01)
    let back = try await admit(registry)
    try give(2, to: back)
    let standIn = try await hand.sink(name)
    #expect(standIn.receive(.tracks([try SyntheticMedia.video()])) == .closed(.replaced))
    #expect(registry.stream(name)?.status.onAir == .publisher)
  }

  @Test func aSilentPublisherIsReplacedAndComesBackByItself() async throws {
    let registry = registry()
    let publisher = try await admit(registry)
    try give(4, to: publisher)
    pass(registry, milliseconds: 4900)
    #expect(hand.begun.isEmpty)
    pass(registry, milliseconds: 200)
    #expect(hand.begun == [.test])
    let stream = try #require(registry.stream(name))
    try give(2, to: try await hand.sink(name))
    #expect(stream.status.onAir == .fallback)
    try give(4, to: publisher, after: 4)
    #expect(stream.status.onAir == .publisher && hand.stops == 1)
    let segments = stream.epoch.window.segments.filter { !$0.isOutage && $0.isComplete }
    for (one, next) in zip(segments, segments.dropFirst()) {
      #expect(abs((next.start - (one.start + one.duration)).seconds) < 0.03)
    }
  }

  @Test func itGoesOnOffAirAndEndsWithTheStream() async throws {
    let registry = registry(.linger(MediaTime(milliseconds: 60_000)))
    try give(4, to: try await admit(registry), end: .finished)
    let recording = made.now[1]
    #expect(recording.seen.ends == 1, "a clean stop finishes it")
    pass(registry)
    let standIn = try await hand.sink(name)
    try give(4, to: standIn)
    let stream = try #require(registry.stream(name))
    #expect(stream.phase == .live)
    for _ in 0..<58 { pass(registry, milliseconds: 1000) }
    #expect(stream.phase == .live && stream.status.onAir == .fallback)
    for _ in 0..<3 { pass(registry, milliseconds: 1000) }
    #expect(stream.phase == .ended && stream.status.onAir == nil)
    #expect(standIn.receive(.progress(.zero)) == .closed(.replaced))
  }

  @Test func oneThatEndsByItselfIsToldAndBeginsAgain() async throws {
    let registry = registry()
    try give(4, to: try await admit(registry), end: .connectionLost("reset"))
    pass(registry)
    let standIn = try await hand.sink(name)
    try give(2, to: standIn, end: .failed("it cannot be read"))
    let stream = try #require(registry.stream(name))
    #expect(stream.phase == .reconnecting && stream.status.warnings == ["the fallback has ended: it cannot be read"])
    pass(registry, milliseconds: 4000)
    #expect(hand.begun.count == 1)
    pass(registry, milliseconds: 2000)
    #expect(hand.begun.count == 2)
    try give(2, to: try await hand.sink(name))
    #expect(stream.phase == .live && stream.status.warnings.isEmpty)
  }

  @Test func aFallbackThatIsTakenAwayEnds() async throws {
    let registry = registry()
    try give(4, to: try await admit(registry), end: .connectionLost("reset"))
    pass(registry)
    try give(2, to: try await hand.sink(name))
    settings.now.fallback = nil
    pass(registry)
    #expect(hand.stops == 1 && registry.stream(name)?.phase == .reconnecting)
  }

  @Test func aChannelIsOnAirFromTheStart() async throws {
    let registry = registry()
    registry.open(channels: [name])
    registry.open(channels: [name])
    let stream = try #require(registry.stream(name))
    #expect(stream.phase == .starting && made.now.map(\.endsWithPublication) == [false])
    pass(registry)
    try give(4, to: try await hand.sink(name))
    #expect(stream.phase == .live && stream.status.onAir == .fallback)
    let epoch = stream.status.epoch
    try give(4, to: try await admit(registry))
    #expect(stream.status.onAir == .publisher && stream.status.epoch == epoch)
    try #require(made.now.map(\.endsWithPublication) == [false, true])
    #expect(made.now[1].seen.fragments > 0 && made.now[1].seen.fragments < made.now[0].seen.fragments)
  }

  @Test func oneThatFlapsEachSecondIsBounded() async throws {
    let registry = registry()
    for _ in 0..<300 {
      hands.advance(seconds: 0.5)
      try give(1, to: try await admit(registry), end: .connectionLost("reset"))
      pass(registry)
      if registry.stream(name)?.status.onAir == nil { try give(1, to: try await hand.sink(name)) }
    }
    let stream = try #require(registry.stream(name))
    #expect(stream.epoch.window.segments.count <= stream.settings.segmentLimit)
    #expect(stream.phase == .live)
  }
}
