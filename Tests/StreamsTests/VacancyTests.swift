import Base
import FMP4
import Logging
import Publishing
@testable import Streams
import StreamSupport
import Support
import Synchronization
import Testing
import Transcode

/// Streams without media, whose publishers have not connected or have gone: they keep nobody else away.
@Suite struct VacancyTests {
  private let time = ManualClock()

  private final class Evictions: Sendable { let names = Mutex<[String]>([]) }
  private let evicted = Evictions()

  /// - Parameter names: new names of an address. Streams whose names begin with "made" have audio in another codec.
  private func registry(
    streams: Int = 1000, names: Int = 64, descriptors: DescriptorBudget = .unlimited
  ) -> StreamRegistry {
    var limits = NameAllowance.Limits()
    (limits.streams, limits.names, limits.namesPerMinute) = (streams, names, min(16, names))
    let made = StreamSettings { ($0.layout, $0.audio) = (.separate, AudioSpecification(.opus)) }
    return StreamRegistry(
      settings: { "\($0)".hasPrefix("made") ? made : StreamSettings() }, names: limits, descriptors: descriptors,
      clock: time.clock,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { _, _, _, _ in [] }
  }

  /// Publishes by RTMP, or makes an offer, a second later than the one before.
  private func publish(
    _ name: String, from host: String, _ registry: StreamRegistry, _ connection: PublishRequest.Connection = .made
  ) async throws -> any MediaSink {
    time.advance(seconds: 1)
    return try await registry.admit(
      PublishRequest(
        stream: try #require(StreamName(name)), key: nil, protocolName: "test", remoteAddress: "\(host):5", host: host,
        connection: connection
      ) { [evicted] _ in evicted.names.withLock { $0.append(name) } })
  }

  private func names(_ registry: StreamRegistry) -> [String] { registry.all.map { "\($0.name)" } }

  @Test func whoHasNotConnectedGivesWayOldestOfTheAddressWithMostFirst() async throws {
    let registry = registry(streams: 4)
    for (name, host) in [("a", "192.0.2.1"), ("b", "192.0.2.2"), ("c", "192.0.2.2"), ("d", "192.0.2.3")] {
      _ = try await publish(name, from: host, registry, .awaited)
    }
    let first = try await publish("e", from: "198.51.100.1", registry)
    #expect(evicted.names.withLock { $0 } == ["b"] && names(registry) == ["a", "c", "d", "e"])
    for number in 0..<3 { _ = try await publish("f\(number)", from: "198.51.100.\(2 + number)", registry) }
    #expect(evicted.names.withLock { $0 } == ["b", "a", "c", "d"])
    // Those that are connected stay, with media or without.
    await #expect(throws: PublishRefusal.tooManyStreams(limit: 4)) {
      try await publish("g", from: "198.51.100.9", registry)
    }
    await #expect(throws: PublishRefusal.tooManyStreams(limit: 4)) {
      try await publish("h", from: "192.0.2.1", registry, .awaited)
    }
    #expect(first.receive(.tracks([try SyntheticMedia.video()])) == .accepted)
  }

  @Test func whoHasConnectedStays() async throws {
    let registry = registry(streams: 2)
    let sink = try await publish("a", from: "192.0.2.1", registry, .awaited)
    sink.connected()
    _ = try await publish("b", from: "192.0.2.2", registry, .awaited)
    _ = try await publish("c", from: "192.0.2.3", registry)
    #expect(names(registry) == ["a", "c"] && evicted.names.withLock { $0 } == ["b"])
    #expect(sink.receive(.tracks([try SyntheticMedia.video()])) == .accepted)
  }

  @Test func whatEndsWithoutMediaHoldsNoPlaceAndWhatHadMediaKeepsIt() async throws {
    let registry = registry(streams: 2)
    let cam = try await publish("cam", from: "192.0.2.1", registry)
    _ = cam.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: time.clock.wallTime)))
    _ = cam.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 3) { _ = cam.receive(.sample(sample)) }
    _ = cam.receive(.end(.finished))
    for number in 0..<10 {
      let sink = try await publish("left\(number)", from: "192.0.2.\(2 + number)", registry, .awaited)
      _ = sink.receive(.end(.connectionLost("no connection within 15 s")))
    }
    _ = try await publish("other", from: "198.51.100.1", registry)
    #expect(names(registry) == ["cam", "other"], "viewers may still watch what had media")
    await #expect(throws: PublishRefusal.self) { try await publish("more", from: "198.51.100.2", registry) }
  }

  @Test func whatNeverConnectedTakesNothingOfTheShareOfItsAddress() async throws {
    let registry = registry(streams: 4)
    for number in 0..<9 {
      let sink = try await publish("left\(number)", from: "192.0.2.1", registry, .awaited)
      if number % 2 == 0 { _ = sink.receive(.end(.connectionLost("no connection within 15 s"))) }
    }
    for name in ["a", "b"] { _ = try await publish(name, from: "192.0.2.1", registry) }
    await #expect(throws: PublishRefusal.tooManyOfAddress(streams: 2)) {
      try await publish("c", from: "192.0.2.1", registry)
    }
    await #expect(throws: PublishRefusal.tooManyOfAddress(streams: 2)) {
      try await publish("d", from: "192.0.2.1", registry, .awaited)
    }
  }

  @Test func descriptorsOfThoseAreAnothers() async throws {
    let registry = registry(descriptors: DescriptorBudget(limit: 64))
    for number in 0..<60 { _ = try? await publish("left\(number)", from: "192.0.2.\(number)", registry, .awaited) }
    let kept = names(registry).count
    for number in 0..<kept { _ = try await publish("cam\(number)", from: "198.51.100.\(number)", registry) }
    #expect(names(registry).allSatisfy { $0.hasPrefix("cam") } && names(registry).count == kept)
  }

  @Test func whoMayTakeNoNewNameEndsNobody() async throws {
    let registry = registry(streams: 4, names: 1)
    _ = try await publish("x", from: "198.51.100.1", registry)
    for (number, name) in ["a", "b", "c"].enumerated() {
      _ = try await publish(name, from: "192.0.2.\(number)", registry, .awaited)
    }
    await #expect {
      _ = try await publish("y", from: "198.51.100.1", registry)
    } throws: {
      if case .tooManyNames? = $0 as? PublishRefusal { true } else { false }
    }
    #expect(names(registry) == ["a", "b", "c", "x"] && evicted.names.withLock { $0 }.isEmpty)
    _ = try await publish("z", from: "198.51.100.2", registry)
    #expect(names(registry) == ["b", "c", "x", "z"], "one that may gets the place")
  }

  @Test func whoMayNotHaveTheNameEndsNothingOfItsOwn() async throws {
    let registry = registry(streams: 4)
    for name in ["a", "b"] { _ = try await publish(name, from: "192.0.2.1", registry, .awaited) }
    _ = try await publish("cam", from: "198.51.100.1", registry)
    await #expect {
      _ = try await publish("cam", from: "192.0.2.1", registry)
    } throws: {
      if case .busy? = $0 as? PublishRefusal { true } else { false }
    }
    #expect(names(registry) == ["a", "b", "cam"] && evicted.names.withLock { $0 }.isEmpty)
  }

  @Test func whereDescriptorsOfThoseAreTooFewNobodyEnds() async throws {
    let budget = DescriptorBudget(limit: 64)
    let registry = registry(descriptors: budget)
    _ = try await publish("left", from: "192.0.2.1", registry, .awaited)
    let cams = budget.streams / DescriptorBudget.perStream - 1
    for number in 0..<cams { _ = try await publish("cam\(number)", from: "198.51.100.\(number)", registry) }
    await #expect {
      _ = try await publish("made", from: "192.0.2.2", registry)
    } throws: {
      if case .noRoom? = $0 as? PublishRefusal { true } else { false }
    }
    #expect(names(registry).contains("left") && evicted.names.withLock { $0 }.isEmpty)
    _ = try await publish("other", from: "192.0.2.2", registry)
    #expect(!names(registry).contains("left"), "one that needs no more gets them")
  }

  @Test func whoConnectsMeanwhileGivesNoWay() async throws {
    let registry = registry()
    let sink = try await publish("a", from: "192.0.2.1", registry, .awaited)
    let stream = try #require(registry.all.first)
    #expect(stream.vacancy != nil)
    sink.connected()
    let hasLeft = stream.giveWay()
    #expect(!hasLeft && !stream.hasEnded && evicted.names.withLock { $0 }.isEmpty)
    #expect(sink.receive(.tracks([try SyntheticMedia.video()])) == .accepted)
  }

  @Test func anotherOneOfItsNameBeginsAtOnceAndTheOldSinkIsClosed() async throws {
    let registry = registry(streams: 1)
    let old = try await publish("cam", from: "192.0.2.1", registry, .awaited)
    _ = try await publish("other", from: "192.0.2.2", registry, .awaited)
    let new = try await publish("cam", from: "192.0.2.3", registry)
    #expect(old.receive(.tracks([try SyntheticMedia.video()])) == .closed(LiveStream.gaveWay))
    #expect(new.receive(.tracks([try SyntheticMedia.video()])) == .accepted)
  }
}
