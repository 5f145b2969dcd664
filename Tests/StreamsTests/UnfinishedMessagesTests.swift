import Base
import FMP4
import Logging
import Publishing
@testable import Streams
import Support
import Synchronization
import Testing

/// Publications that hold unfinished messages, at the registry.
@Suite struct UnfinishedMessagesTests {
  private final class Evictions: Sendable {
    let reasons = Mutex<[EndReason]>([])
  }

  private static let mebibyte = 1 << 20
  private let time = ManualClock()
  /// An address without a key may hold 2 MiB.
  private let memory = WindowBudget(perStream: 64 << 20, inAll: 64 << 20)

  private func registry() -> StreamRegistry {
    StreamRegistry(
      settings: { _ in StreamSettings() }, memory: memory, clock: time.clock,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { _, _, _, _ in [] }
  }

  private func request(_ name: String, _ evictions: Evictions = Evictions()) throws -> PublishRequest {
    PublishRequest(
      stream: try #require(StreamName(name)), key: nil, protocolName: "RTMP", remoteAddress: "10.0.0.1:5",
      host: "10.0.0.1"
    ) { reason in evictions.reasons.withLock { $0.append(reason) } }
  }

  @Test func theLargestOfAnAddressEndsWithTheReason() async throws {
    let (registry, evictions) = (registry(), Evictions())
    let large = try await registry.admit(try request("large", evictions))
    let small = try await registry.admit(try request("small"))
    large.holds(Self.mebibyte + Self.mebibyte / 2)
    #expect(memory.used == Self.mebibyte + Self.mebibyte / 2, "they count as media of the stream")
    small.holds(Self.mebibyte)
    guard case .failed(let reason)? = evictions.reasons.withLock({ $0.first }) else {
      Issue.record("nothing is ended")
      return
    }
    #expect(reason.contains("unfinished messages") && reason.contains("give it a key"))
    #expect(large.receive(.tracks([try SyntheticMedia.video()])) == .closed(.failed(reason)))
    #expect(small.receive(.tracks([try SyntheticMedia.video()])) == .accepted)
    #expect(memory.used == Self.mebibyte && evictions.reasons.withLock { $0.count } == 1)
  }

  @Test func theirStreamKeepsAsMuchLessMedia() async throws {
    let registry = registry()
    let sink = try await registry.admit(try request("cam"))
    _ = sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: time.clock.wallTime)))
    _ = sink.receive(.tracks([try SyntheticMedia.video()]))
    for index in 0..<660 { _ = sink.receive(.sample(SyntheticMedia.frame(index, group: 30, size: 100_000))) }
    let name = try #require(StreamName("cam"))
    let stream = try #require(registry.stream(name))
    let before = stream.epoch.window
    #expect(before.residentBytes > 61 << 20)
    sink.holds(2 * Self.mebibyte)
    #expect(memory.used <= 64 << 20)
    sink.holds(0)
    #expect(stream.epoch.window.residentBytes < 61 << 20)
    #expect(stream.epoch.window.segments.last?.sequenceNumber == before.segments.last?.sequenceNumber)
  }
}
