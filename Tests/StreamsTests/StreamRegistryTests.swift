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

@Suite struct StreamRegistryTests {
  /// A clock that tests move.
  private final class Hands: Sendable {
    let now = Mutex<MonotonicTime>(1_000_000_000_000)
    func advance(seconds: Double) { now.withLock { $0 += Int64(seconds * 1e9) } }
    var clock: SteadyClock {
      SteadyClock(ClockReading(wall: EpochDriver.wall, monotonic: 0)) { self.now.withLock { $0 } }
    }
  }

  private final class Evictions: Sendable {
    let reasons = Mutex<[EndReason]>([])
  }

  private let hands = Hands()

  private func registry(key: String? = nil) -> StreamRegistry {
    var keys = PublishKeys()
    if let key { keys.add(Secret(key), for: .all) }
    return StreamRegistry(
      settings: { _ in StreamSettings() },
      authorizer: Authorizer(Authorizer.Rules(publishKeys: keys), clock: hands.clock), clock: hands.clock,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { _, _, _, _ in [] }
  }

  private func request(
    _ name: String, key: String? = nil, from address: String = "10.0.0.1:5", _ log: Evictions = Evictions()
  )
    throws -> PublishRequest
  {
    PublishRequest(
      stream: try #require(StreamName(name)), key: key.map { Secret($0) }, protocolName: "RTMP", remoteAddress: address,
      host: address.split(separator: ":").first.map(String.init)
    ) { reason in log.reasons.withLock { $0.append(reason) } }
  }

  private func send(_ seconds: Int, to sink: any MediaSink) throws {
    _ = sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: hands.clock.wallTime)))
    _ = sink.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: seconds) { #expect(sink.receive(.sample(sample)) == .accepted) }
  }

  @Test func aWrongOrMissingKeyIsRefused() async throws {
    let registry = registry(key: "right")
    await #expect(throws: PublishRefusal.unauthorized) { try await registry.admit(try request("cam")) }
    await #expect(throws: PublishRefusal.unauthorized) { try await registry.admit(try request("cam", key: "wrong")) }
    _ = try await registry.admit(try request("cam", key: "right"))
  }

  @Test func aSourceOfTheServersOwnNeedsNoKey() async throws {
    let registry = registry(key: "right")
    // What a publisher calls itself opens nothing.
    var peer = try request("cam")
    peer.protocolName = "test"
    let named = peer
    await #expect(throws: PublishRefusal.unauthorized) { try await registry.admit(named) }
    var source = peer
    source.origin = .server
    _ = try await registry.admit(source)
  }

  @Test func withoutKeysAHolderThatIsSendingKeepsItsName() async throws {
    let registry = registry()
    let first = try await registry.admit(try request("cam"))
    try send(3, to: first)
    hands.advance(seconds: 2.9)
    await #expect(throws: PublishRefusal.busy(stream: try #require(StreamName("cam")), holder: "10.0.0.1:5")) {
      try await registry.admit(try request("cam", from: "10.0.0.2:6"))
    }
    hands.advance(seconds: 0.2)
    _ = try await registry.admit(try request("cam", from: "10.0.0.2:6"))
    #expect(first.receive(.progress(.zero)) == .closed(.replaced))
  }

  @Test func withAKeyTheNewestWinsAtMostOnceInFiveSeconds() async throws {
    let registry = registry(key: "k")
    let log = Evictions()
    _ = try await registry.admit(try request("cam", key: "k", log))
    _ = try await registry.admit(try request("cam", key: "k"))
    #expect(log.reasons.withLock { $0 } == [.replaced])
    hands.advance(seconds: 4.9)
    await #expect(throws: PublishRefusal.self) { try await registry.admit(try request("cam", key: "k")) }
    hands.advance(seconds: 0.2)
    _ = try await registry.admit(try request("cam", key: "k"))
  }

  @Test func aPublisherThatReturnsContinuesTheSamePlaylist() async throws {
    let registry = registry()
    let name = try #require(StreamName("cam"))
    let first = try await registry.admit(try request("cam"))
    try send(5, to: first)
    _ = first.receive(.end(.connectionLost("reset")))
    let stream = try #require(registry.stream(name))
    #expect(stream.status.phase == .reconnecting)
    let epoch = stream.status.epoch
    let before = stream.epoch.window.nextSequenceNumber
    hands.advance(seconds: 29)
    registry.tend()
    let second = try await registry.admit(try request("cam"))
    try send(5, to: second)
    #expect(stream.status.epoch == epoch)
    #expect(stream.status.phase == .live)
    let window = stream.epoch.window
    #expect(window.nextSequenceNumber > before)
    let outage = window.segments.filter(\.isOutage)
    #expect(outage.first?.sequenceNumber == before, "the outage is in the playlists")
    #expect(window.segments.filter(\.followsDiscontinuity).map(\.sequenceNumber) == [before + outage.count])
    #expect(window.inits.count == 1)
  }

  @Test func aStreamEndsWhenItsPublisherStaysAwayAndIsForgottenAMinuteLater() async throws {
    let registry = registry()
    let name = try #require(StreamName("cam"))
    let sink = try await registry.admit(try request("cam"))
    try send(5, to: sink)
    _ = sink.receive(.end(.connectionLost("reset")))
    hands.advance(seconds: 30)
    registry.tend()
    #expect(registry.stream(name)?.status.phase == .ended)
    #expect(registry.stream(name)?.epoch.window.isEnded == true)
    hands.advance(seconds: 59)
    registry.tend()
    #expect(registry.stream(name) != nil)
    hands.advance(seconds: 1)
    registry.tend()
    #expect(registry.stream(name) == nil)
  }

  @Test func whatIsWrongWithAPublicationIsToldUntilItIsRight() async throws {
    let registry = registry()
    let sink = try await registry.admit(try request("cam"))
    let name = try #require(StreamName("cam"))
    let stream = try #require(registry.stream(name))
    sink.warn(.neverCame(.audio))
    sink.warn(.neverCame(.audio))
    _ = sink.receive(.tracks([try SyntheticMedia.video()]))
    #expect(stream.status.warnings == [PublicationWarning.neverCame(.audio).description])
    _ = sink.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    #expect(stream.status.warnings.isEmpty)
  }

  @Test func aStreamThatIsOnlyRefreshedGraduallyHasNothingToBeginWith() async throws {
    let registry = registry()
    let sink = try await registry.admit(try request("cam"))
    let name = try #require(StreamName("cam"))
    let stream = try #require(registry.stream(name))
    _ = sink.receive(.tracks([try SyntheticMedia.video()]))
    #expect(!stream.lacksKeyFrames)
    sink.warn(.onlyGradualRefresh)
    #expect(stream.lacksKeyFrames)
    sink.withdraw(.onlyGradualRefresh)
    #expect(!stream.lacksKeyFrames)
  }

  @Test func aWarningEndsWithItsPublication() async throws {
    let registry = registry()
    let first = try await registry.admit(try request("cam"))
    first.warn(.neverCame(.video))
    try send(3, to: first)
    hands.advance(seconds: 4)
    _ = try await registry.admit(try request("cam"))
    first.warn(.neverCame(.video))
    let name = try #require(StreamName("cam"))
    #expect(registry.stream(name)?.status.warnings == [])
  }

  @Test func theClockOfAPublicationDoesNotKeepItsName() async throws {
    let registry = registry()
    let first = try await registry.admit(try request("cam"))
    try send(3, to: first)
    hands.advance(seconds: 3.1)
    _ = first.receive(.progress(MediaTime(milliseconds: 6000)))
    _ = try await registry.admit(try request("cam"))
  }

  @Test func aPublisherAfterTheEndBeginsANewEpochAndTheOldOneStaysAMinute() async throws {
    let registry = registry()
    let name = try #require(StreamName("cam"))
    let first = try await registry.admit(try request("cam"))
    try send(5, to: first)
    _ = first.receive(.end(.finished))
    let stream = try #require(registry.stream(name))
    let old = stream.status.epoch
    #expect(stream.status.phase == .ended)
    let second = try await registry.admit(try request("cam"))
    try send(5, to: second)
    #expect(stream.status.epoch != old)
    #expect(stream.window(ofEpoch: old)?.isEnded == true)
    #expect(stream.epoch.window.segments.first?.sequenceNumber == 1)
    hands.advance(seconds: 61)
    registry.tend()
    #expect(stream.window(ofEpoch: old) == nil)
  }

  @Test func aNameThatEndsAndBeginsAnewTooOftenIsRefused() async throws {
    let registry = registry()
    for _ in 0..<120 {
      let sink = try await registry.admit(try request("cam"))
      _ = sink.receive(.tracks([try SyntheticMedia.video()]))
      _ = sink.receive(.end(.finished))
      registry.tend()
    }
    let refusal = PublishRefusal.tooManyBreaks(stream: try #require(StreamName("cam")), retryAfterSeconds: 1)
    await #expect(throws: refusal) { try await registry.admit(try request("cam")) }
    _ = try await registry.admit(try request("other"))
    hands.advance(seconds: 1)
    _ = try await registry.admit(try request("cam"))
  }

  @Test func shuttingDownEndsStreamsAndAdmitsNoPublisher() async throws {
    let registry = registry()
    let log = Evictions()
    let sink = try await registry.admit(try request("cam", log))
    try send(3, to: sink)
    registry.shutDown()
    #expect(log.reasons.withLock { $0 } == [.shutdown])
    #expect(sink.receive(.progress(.zero)) == .closed(.shutdown))
    await #expect(throws: PublishRefusal.shuttingDown) { try await registry.admit(try request("other")) }
  }

  @Test func viewersAreCountedOnceAndNewOnesRefusedWhenFull() throws {
    let viewers = ViewerRegistry(limit: 2, clock: hands.clock)
    let cam = try #require(StreamName("cam"))
    let life = MediaTime(milliseconds: 6000)
    #expect(viewers.touch(stream: cam, client: ClientID(number: 1), lifetime: life))
    #expect(viewers.touch(stream: cam, client: ClientID(number: 2), lifetime: life))
    #expect(!viewers.touch(stream: cam, client: ClientID(number: 3), lifetime: life))
    #expect(
      viewers.touch(stream: cam, client: ClientID(number: 1), lifetime: life), "a viewer that plays is never dropped")
    #expect(viewers.count(of: cam) == 2)
    hands.advance(seconds: 6.1)
    #expect(viewers.count(of: cam) == 0)
    #expect(viewers.touch(stream: cam, client: ClientID(number: 3), lifetime: life))
  }
}
