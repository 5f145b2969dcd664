@testable import Base
import FMP4
import NIOCore
@testable import Publishing
import Support
import Testing

@Suite("A publication that was admitted")
struct AdmittedPublicationTests {
  private let gate = RecordingGate()
  private let log = LogCollector()

  private func publication() async throws -> (publication: AdmittedPublication, sink: RecordingGate.Sink) {
    let name = try #require(StreamName("cam"))
    let publisher = Publisher(
      protocolName: "RTMP", remoteAddress: "192.0.2.7:4711", host: "192.0.2.7", gate: gate, logger: log.logger)
    _ = try await gate.admit(publisher.request(name, key: nil, software: "script 1") { _ in })
    let sink = try #require(gate.sinks.last)
    return (AdmittedPublication(name, by: publisher, software: "script 1", sink: sink), sink)
  }

  private func tracks() throws -> [TrackDescription] {
    let codec = try Codec(.aac, record: .init(bytes: PublishedRecord.aac48))
    return [TrackDescription(id: .audio, codec: codec, timescale: 48_000)]
  }

  @Test func `The first tracks are told as the beginning, later ones as a change`() async throws {
    var (publication, sink) = try await publication()
    #expect(publication.give(.tracks(try tracks()), encoder: "", now: 0) == nil)
    #expect(publication.give(.tracks(try tracks()), encoder: "OBS 30", now: 1) == nil)
    #expect(
      log.lines == [
        "notice: cam: publishing AAC 48 kHz stereo from 192.0.2.7:4711 (script 1)",
        "notice: cam: now AAC 48 kHz stereo from 192.0.2.7:4711 (OBS 30)",
      ])
    #expect(sink.tracks.count == 2)
  }

  @Test func `A publisher that changes its tracks all the time does not fill the log`() async throws {
    var (publication, sink) = try await publication()
    for now in 0..<20 as Range<Int64> { _ = publication.give(.tracks(try tracks()), encoder: "", now: .at(now)) }
    #expect(log.lines.count == LogThrottle.burst && sink.tracks.count == 20)
    _ = publication.give(.tracks(try tracks()), encoder: "", now: .at(LogThrottle.span))
    #expect(log.lines.last?.hasSuffix("(script 1) (15 earlier changes were not logged)") == true)
  }

  @Test func `The sink is told of bytes that are held, but not of small changes`() async throws {
    var (publication, sink) = try await publication()
    for bytes in [0, 65_535, 65_536, 100_000, 131_072, 131_071, 65_537, 65_536, 0] { publication.hold(bytes) }
    #expect(sink.held == [65_536, 131_072, 65_536, 0])
  }

  @Test func `A sink that closes ends it, and the log tells why`() async throws {
    var (publication, sink) = try await publication()
    #expect(publication.give(.discontinuity, encoder: "", now: 0) == nil)
    sink.close(.replaced)
    #expect(publication.give(.discontinuity, encoder: "", now: 1) == .replaced)
    #expect(sink.recorded.count == 2 && sink.ending == nil)
    #expect(log.lines == ["notice: cam: ended: another publisher took the name over"])
  }

  @Test func `The end is the sink's last event, and a failure is a warning`() async throws {
    let (publication, sink) = try await publication()
    publication.end(.failed("no such codec"))
    #expect(sink.ending == .failed("no such codec"))
    #expect(log.lines == ["warning: cam: ended: no such codec"])
  }
}
