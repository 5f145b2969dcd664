import Base
@testable import Control
import FMP4
import Logging
import Publishing
@testable import Streams
import Support
import Testing

/// How many streams an address may hold that shows no key.
@Suite struct StreamsByAddressTests {
  private let time = ManualClock()
  private let attacker = "127.0.0.2"
  private let newcomer = "127.0.0.3"

  private func name(_ text: String) throws -> StreamName { try #require(StreamName(text)) }

  private func registry(key: String? = nil, streams: Int = 1000, descriptors: Int? = nil) -> StreamRegistry {
    var keys = PublishKeys()
    if let key { keys.add(Secret(key), for: .all) }
    var limits = NameAllowance.Limits()
    limits.streams = streams
    return StreamRegistry(
      settings: { _ in StreamSettings() },
      authorizer: Authorizer(Authorizer.Rules(publishKeys: keys), clock: time.clock), names: limits,
      descriptors: descriptors.map { DescriptorBudget(limit: $0) } ?? .unlimited, clock: time.clock,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { _, _, _, _ in [] }
  }

  private func request(_ name: String, key: String? = nil, from host: String?) throws -> PublishRequest {
    PublishRequest(
      stream: try self.name(name), key: key.map { Secret($0) }, protocolName: "RTMP",
      remoteAddress: "\(host ?? "unknown"):5", host: host
    ) { _ in }
  }

  /// Publishes names until one is refused.
  private func fill(
    _ registry: StreamRegistry, key: String? = nil, from host: String
  ) async throws -> (taken: Int, refusal: PublishRefusal?) {
    for number in 0..<60 {
      let request = try request("\(host)-\(number)", key: key, from: host)
      do throws(PublishRefusal) {
        _ = try await registry.admit(request)
      } catch {
        return (number, error)
      }
    }
    return (60, nil)
  }

  private static let halves: [(Int, Int?, Int)] = [(10, nil, 5), (11, nil, 5), (1, nil, 1), (2, nil, 1), (1000, 64, 9)]

  @Test(arguments: halves)
  func anAddressWithoutAKeyHoldsAtMostHalfOfTheStreams(_ streams: Int, _ descriptors: Int?, _ half: Int) async throws {
    let registry = registry(streams: streams, descriptors: descriptors)
    let (taken, refusal) = try await fill(registry, from: attacker)
    #expect(taken == half)
    guard streams > 1 else { return }
    #expect(refusal == .tooManyOfAddress(streams: half))
    #expect(refusal?.description.contains("publish with a key") == true)
    _ = try await registry.admit(try request("cam", from: newcomer))
    #expect(registry.overview.rejections == ["address": 1])
  }

  @Test func withAKeyOrWithoutAnAddressThereIsNoSuchBound() async throws {
    let registry = registry(key: "secret", streams: 10)
    let (taken, refusal) = try await fill(registry, key: "secret", from: attacker)
    #expect(taken == 10 && refusal == .tooManyStreams(limit: 10))
    let open = self.registry(streams: 4)
    for number in 0..<4 { _ = try await open.admit(try request("n\(number)", from: nil)) }
  }

  @Test func whatIsForgottenIsHeldNoLongerAndWhatIsTakenOverIsAnothers() async throws {
    let registry = registry(streams: 4)
    let first = try await registry.admit(try request("a", from: attacker))
    _ = try await registry.admit(try request("b", from: attacker))
    await #expect(throws: PublishRefusal.tooManyOfAddress(streams: 2)) {
      try await registry.admit(try request("c", from: attacker))
    }
    _ = first.receive(.end(.finished))
    await #expect(throws: PublishRefusal.tooManyOfAddress(streams: 2)) {
      try await registry.admit(try request("c", from: attacker))
    }
    // Its own it may begin anew, and another address may have it when it is over.
    let again = try await registry.admit(try request("a", from: attacker))
    _ = again.receive(.end(.finished))
    _ = try await registry.admit(try request("a", from: newcomer))
    let third = try await registry.admit(try request("c", from: attacker))
    _ = third.receive(.end(.finished))
    time.advance(seconds: 60)
    registry.tend()
    _ = try await registry.admit(try request("d", from: attacker))
  }

  @Test func anAddressDoesNotTakeMoreThanHalfByTakingOver() async throws {
    let registry = registry(streams: 4)
    let other = try await registry.admit(try request("cam", from: newcomer))
    for name in ["a", "b"] { _ = try await registry.admit(try request(name, from: attacker)) }
    _ = other.receive(.end(.finished))
    await #expect(throws: PublishRefusal.tooManyOfAddress(streams: 2)) {
      try await registry.admit(try request("cam", from: attacker))
    }
    _ = try await registry.admit(try request("cam", from: newcomer))
  }

  @Test func descriptorsOfLaddersCountAsWell() throws {
    var holdings = StreamsByAddress()
    let all = StreamsByAddress.Share(streams: 100, descriptors: 40)
    #expect(try holdings.mayHold(name("a"), "x", descriptors: 30, of: all), "one is always possible")
    holdings.give(try name("a"), to: "x", descriptors: 11)
    #expect(try holdings.mayHold(name("b"), "x", descriptors: 9, of: all))
    #expect(try !holdings.mayHold(name("b"), "x", descriptors: 10, of: all))
    #expect(try holdings.mayHold(name("b"), "y", descriptors: 10, of: all))
    holdings.give(try name("a"), to: nil, descriptors: 0)
    #expect(holdings.streams(of: "x") == 0)
  }
}
