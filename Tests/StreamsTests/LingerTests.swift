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

/// Streams that wait for the next publisher when theirs has stopped.
@Suite struct LingerTests {
  /// Notes what it gets.
  private final class Sink: FragmentSink {
    let endsWithPublication: Bool
    private let log = Mutex<(inits: Int, fragments: Int, ends: [EndReason])>((0, 0, []))
    var seen: (inits: Int, fragments: Int, ends: [EndReason]) { log.withLock { $0 } }

    init(endsWithPublication: Bool) { self.endsWithPublication = endsWithPublication }

    func receive(_ event: StoredEvent) {
      log.withLock { log in
        switch event {
        case .initialization: log.inits += 1
        case .fragment: log.fragments += 1
        case .end(let reason): log.ends.append(reason)
        case .segmentEnd, .clock, .redated, .discontinuity: break
        }
      }
    }
  }

  private final class Made: Sendable {
    let all = Mutex<[Sink]>([])
  }

  private let name: StreamName
  private let hands = ManualClock()
  private let settings = Reloadable(StreamSettings())
  private let sinks = Made()

  init() throws { name = try #require(StreamName("cam")) }

  private func registry(
    _ end: StreamSettings.EndRule, isOfOneName: Bool = true, key: String? = nil, authorizer: Authorizer? = nil
  ) -> StreamRegistry {
    var keys = PublishKeys()
    if let key { keys.add(Secret(key), for: .all) }
    settings.now = StreamSettings { ($0.end, $0.isOfOneName) = (end, isOfOneName) }
    return StreamRegistry(
      settings: { [settings] _ in settings.now },
      authorizer: authorizer ?? Authorizer(Authorizer.Rules(publishKeys: keys), clock: hands.clock), clock: hands.clock,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { [sinks] _, _, _, isNew in
      let made = (isNew ? [false, true] : [true]).map(Sink.init)
      sinks.all.withLock { $0 += made }
      return made
    }
  }

  private func publish(_ seconds: Int, in registry: StreamRegistry, key: String? = nil, end: EndReason?) async throws {
    let request = PublishRequest(
      stream: name, key: key.map { Secret($0) }, protocolName: "RTMP",
      remoteAddress: "10.0.0.1:5", host: "10.0.0.1"
    ) { _ in }
    let sink = try await registry.admit(request)
    _ = sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: hands.clock.wallTime)))
    _ = sink.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: seconds) { #expect(sink.receive(.sample(sample)) == .accepted) }
    if let end { #expect(sink.receive(.end(end)) == .accepted) }
  }

  private func pass(_ seconds: Int, _ registry: StreamRegistry) {
    for _ in 0..<seconds {
      hands.advance(seconds: 1)
      registry.tend()
    }
  }

  @Test func aCleanStopEndsAStreamWithoutSuchARule() async throws {
    let registry = registry(.publisher)
    try await publish(4, in: registry, end: .finished)
    #expect(registry.stream(name)?.phase == .ended)
  }

  @Test func aStreamWaitsInItsEpochAndEndsWhenNobodyComes() async throws {
    let registry = registry(.linger(MediaTime(milliseconds: 60_000)))
    try await publish(4, in: registry, end: .finished)
    let stream = try #require(registry.stream(name))
    #expect(stream.phase == .offAir && stream.status.endedAt == nil)
    let (epoch, next) = (stream.status.epoch, stream.epoch.window.nextSequenceNumber)
    pass(55, registry)
    #expect(stream.phase == .offAir)
    #expect(!stream.epoch.window.segments.filter { !$0.isOutage }.isEmpty, "the last window stays")
    try await publish(4, in: registry, end: .finished)
    #expect(stream.status.epoch == epoch && stream.epoch.window.nextSequenceNumber > next)
    #expect(stream.epoch.window.inits.count == 1)
    pass(59, registry)
    #expect(stream.phase == .offAir)
    pass(1, registry)
    #expect(stream.phase == .ended)
  }

  @Test func theWaitCountsFromTheLossOfAPublisher() async throws {
    let registry = registry(.linger(MediaTime(milliseconds: 60_000)))
    try await publish(4, in: registry, end: .connectionLost("reset"))
    let stream = try #require(registry.stream(name))
    pass(29, registry)
    #expect(stream.phase == .reconnecting)
    pass(1, registry)
    #expect(stream.phase == .offAir)
    pass(29, registry)
    #expect(stream.phase == .offAir)
    pass(1, registry)
    #expect(stream.phase == .ended)
  }

  @Test func aNameThatAnybodyMayTakeEndsWithItsPublisher() async throws {
    let open = registry(.never, isOfOneName: false)
    try await publish(4, in: open, end: .finished)
    #expect(open.stream(name)?.phase == .ended)
    let keyed = registry(.never, isOfOneName: false, key: "k")
    try await publish(4, in: keyed, key: "k", end: .finished)
    #expect(keyed.stream(name)?.phase == .offAir)
  }

  @Test func recordingsEndWithThePublicationAndBeginWithTheNext() async throws {
    let registry = registry(.never)
    try await publish(4, in: registry, end: .finished)
    try await publish(4, in: registry, end: .connectionLost("reset"))
    let made = sinks.all.withLock { $0 }
    try #require(made.map(\.endsWithPublication) == [false, true, true])
    #expect(made[0].seen.ends.isEmpty && made[1].seen.ends == [.finished])
    #expect(made[2].seen.inits == 1, "it is told the tracks that go on")
    #expect(made[2].seen.ends.isEmpty, "a lost connection is waited for")
    #expect(made[0].seen.fragments == made[1].seen.fragments + made[2].seen.fragments)
    pass(30, registry)
    #expect(made[2].seen.ends == [.connectionLost("the publisher did not return in time")])
    #expect(made[0].seen.ends.isEmpty)
  }

  @Test func aRuleThatIsTakenBackEndsAStreamThatWaits() async throws {
    let registry = registry(.never)
    try await publish(4, in: registry, end: .finished)
    let stream = try #require(registry.stream(name))
    pass(100, registry)
    #expect(stream.phase == .offAir)
    settings.now = StreamSettings()
    pass(1, registry)
    #expect(stream.phase == .ended)
  }

  @Test func aKeyThatIsRevokedLetsNothingWait() async throws {
    var keys = PublishKeys()
    keys.add(Secret("k"), for: .all)
    let authorizer = Authorizer(Authorizer.Rules(publishKeys: keys), clock: hands.clock)
    let registry = registry(.never, isOfOneName: false, authorizer: authorizer)
    try await publish(4, in: registry, key: "k", end: .finished)
    let stream = try #require(registry.stream(name))
    registry.endRevoked()
    pass(1, registry)
    #expect(stream.phase == .offAir)
    authorizer.follow(Authorizer.Rules())
    registry.endRevoked()
    pass(1, registry)
    #expect(stream.phase == .ended)
  }

  @Test func aPublicationWithoutMediaLeavesNothingThatWaits() async throws {
    let registry = registry(.never)
    let request = PublishRequest(
      stream: name, key: nil, protocolName: "RTMP", remoteAddress: "10.0.0.1:5", host: "10.0.0.1"
    ) { _ in }
    let sink = try await registry.admit(request)
    #expect(sink.receive(.end(.finished)) == .accepted)
    #expect(registry.stream(name)?.phase == .ended)
  }

  @Test func aRequestEndsIt() async throws {
    let registry = registry(.never)
    try await publish(4, in: registry, end: .finished)
    let stream = try #require(registry.stream(name))
    pass(7200, registry)
    #expect(stream.phase == .offAir)
    stream.shutDown()
    #expect(stream.phase == .ended && stream.status.endedAt != nil)
  }
}
