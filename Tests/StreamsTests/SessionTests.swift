import Base
import FMP4
import Logging
import Publishing
@testable import Streams
import Support
import Synchronization
import Testing

/// Sessions of publishers and viewers, and how they are ended on request.
@Suite struct SessionTests {
  private let time = ManualClock()

  private func registry() -> StreamRegistry {
    StreamRegistry(
      settings: { _ in StreamSettings() }, clock: time.clock,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { _, _, _, _ in [] }
  }

  private final class Told: Sendable {
    let reasons = Mutex<[EndReason]>([])
  }

  private func publisher(_ told: Told) throws -> PublishRequest {
    PublishRequest(
      stream: try #require(StreamName("cam")), key: nil, protocolName: "RTMP", remoteAddress: "10.0.0.1:5",
      host: "10.0.0.1", software: "OBS"
    ) { reason in told.reasons.withLock { $0.append(reason) } }
  }

  @Test func aPublisherIsASessionUntilItLeaves() async throws {
    let registry = registry()
    #expect(registry.publisherSessions.isEmpty)
    let sink = try await registry.admit(try publisher(Told()))
    #expect(sink.receive(.tracks([try SyntheticMedia.video()])) == .accepted)
    let session = try #require(registry.publisherSessions.first)
    #expect(session.stream.description == "cam" && session.protocolName == "RTMP" && session.software == "OBS")
    #expect(session.remoteAddress == "10.0.0.1:5" && session.bytes == 0)
    #expect(session.id.description.hasPrefix("p-"))
    #expect(sink.receive(.end(.finished)) == .accepted)
    #expect(registry.publisherSessions.isEmpty)
  }

  @Test func anEndedSessionIsToldWhyAndOthersGoOn() async throws {
    let registry = registry()
    let told = Told()
    let sink = try await registry.admit(try publisher(told))
    let name = try #require(StreamName("cam"))
    let stream = try #require(registry.stream(name))
    let session = try #require(registry.publisherSessions.first)
    #expect(!stream.endSession(SessionID(.publisher)))
    #expect(stream.endSession(session.id))
    let reason = EndReason.failed("an administrator ended the session")
    #expect(told.reasons.withLock { $0 } == [reason])
    // What it still sends is answered with the same reason.
    #expect(sink.receive(.progress(.zero)) == .closed(reason))
    #expect(!stream.endSession(session.id))
    let next = try await registry.admit(try publisher(Told()))
    #expect(next.receive(.tracks([try SyntheticMedia.video()])) == .accepted)
    #expect(registry.publisherSessions.first?.id != session.id)
  }

  @Test func aStreamThatIsEndedOnRequestTellsItsPublisher() async throws {
    let registry = registry()
    let told = Told()
    let sink = try await registry.admit(try publisher(told))
    let name = try #require(StreamName("cam"))
    let stream = try #require(registry.stream(name))
    stream.endOnRequest()
    let reason = EndReason.failed("an administrator ended the stream")
    #expect(stream.phase == .ended && told.reasons.withLock { $0 } == [reason])
    #expect(sink.receive(.progress(.zero)) == .closed(reason))
  }

  @Test func theResponseOfAViewerIsASession() throws {
    let viewers = ViewerRegistry(limit: 3, clock: time.clock)
    let cam = try #require(StreamName("cam"))
    let life = MediaTime(milliseconds: 6000)
    #expect(viewers.touch(stream: cam, client: ClientID(number: 1), lifetime: life))
    #expect(viewers.sessions.isEmpty)
    let seat = try #require(viewers.seat(stream: cam, client: ClientID(number: 2), lifetime: life))
    let session = try #require(viewers.sessions.first)
    #expect(session.stream == cam && session.id.description.hasPrefix("v-"))
    let ends = Mutex(0)
    seat.whenRevoked { ends.withLock { $0 += 1 } }
    #expect(SessionID("v-0-0") == nil && SessionID("v-0") == nil && SessionID("") == nil)
    #expect(SessionID(session.id.description) == session.id && viewers.session(session.id)?.id == session.id)
    #expect(!viewers.endSession(SessionID(.viewer)))
    #expect(viewers.endSession(session.id))
    #expect(ends.withLock { $0 } == 1)
    withExtendedLifetime(seat) {}
  }
}
