import Base
import FMP4
import NIOCore
import Publishing
import Support
import Synchronization
import Testing
import Transcode

@Suite("The gate before decoded audio")
struct DecodedMediaGateTests {
  private final class Noting: PublishGate {
    let refused = Mutex<[RefusedPublication]>([])
    func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink { throw .shuttingDown }
    func note(_ refused: RefusedPublication) { self.refused.withLock { $0.append(refused) } }
  }

  private func gate(_ inner: any PublishGate, asked: @escaping @Sendable (StreamName) -> Void = { _ in })
    -> DecodedMediaGate
  {
    DecodedMediaGate(
      inner, launcher: WorkerThread.launcher(), room: .unlimited, logger: .silent
    ) {
      asked($0)
      return nil
    }
  }

  private func request(_ name: String) throws -> PublishRequest {
    PublishRequest(
      stream: try #require(StreamName(name)), key: nil, protocolName: "RTMP", remoteAddress: "10.0.0.1:5"
    ) { _ in }
  }

  @Test func `Who is refused stays refused, and what is noted is passed on`() async throws {
    let inner = Noting()
    let gate = gate(inner)
    let wanted = try request("cam")
    await #expect(throws: PublishRefusal.self) { try await gate.admit(wanted) }
    gate.note(
      RefusedPublication(
        stream: "cam", protocolName: "RTMP", remoteAddress: "10.0.0.1:5", host: nil, reason: "x", publicReason: "x"))
    #expect(inner.refused.withLock { $0.map(\.stream) } == ["cam"])
  }

  @Test func `What outputs carry passes as it is, and the stream's own codec is asked for`() async throws {
    let inner = LimitedGate()
    let asked = Mutex<[String]>([])
    let sink = try await gate(inner) { name in asked.withLock { $0.append("\(name)") } }.admit(try request("cam"))
    #expect(asked.withLock { $0 } == ["cam"] && inner.request?.stream.description == "cam")
    let tracks = [try SyntheticMedia.video(), try SyntheticMedia.audio()]
    _ = sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: 0)))
    _ = sink.receive(.tracks(tracks))
    for sample in SyntheticMedia.interleaved(seconds: 1) { #expect(sink.receive(.sample(sample)) == .accepted) }
    _ = sink.receive(.end(.finished))
    #expect(inner.tracks == [tracks] && inner.ending == .finished)
    #expect(inner.samples.map(\.decodeTime) == SyntheticMedia.interleaved(seconds: 1).map(\.decodeTime))
  }

  @Test func `A stream that ends the publication is heard`() async throws {
    let sink = try await gate(LimitedGate(limit: 1)).admit(try request("cam"))
    #expect(sink.receive(.tracks([try SyntheticMedia.video()])) == .closed(.replaced))
  }
}
