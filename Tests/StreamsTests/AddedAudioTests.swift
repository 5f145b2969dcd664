@testable import Base
import FMP4
import Logging
import NIOCore
import Publishing
@testable import Streams
import StreamSupport
import Support
import Synchronization
import Testing
import Transcode

/// AAC beside audio that most browsers cannot play, where no setting asks for it.
@Suite struct AddedAudioTests {
  private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  private func publishing(
    _ settings: StreamSettings, _ tracks: [[TrackDescription]], room: WorkerRoom? = nil
  ) async throws -> LiveStream {
    let name = try #require(StreamName("cam"))
    let registry = StreamRegistry(
      settings: { _ in settings }, workers: .process(executable: "/nothing", arguments: []), room: room,
      clock: .system(), logger: logger
    ) { _, _, _, _ in [] }
    let sink = try await registry.admit(
      PublishRequest(stream: name, key: nil, protocolName: "test", remoteAddress: "10.0.0.1:5") { _ in })
    sink.warn(.rarelyPlayed("AC-3"))
    for tracks in tracks { _ = sink.receive(.tracks(tracks)) }
    _ = sink.receive(.end(.finished))
    return try #require(registry.stream(name))
  }

  private func surround() throws -> TrackDescription {
    TrackDescription(
      id: .audio, codec: try Codec(.ac3, record: ByteBuffer(bytes: [0x10, 0x3D, 0xC0])), timescale: 48_000)
  }

  @Test func `AC-3 has AAC beside it, and each track is served by itself`() async throws {
    let stream = try await publishing(StreamSettings(), [[try SyntheticMedia.video(), try surround()]])
    #expect(stream.epoch.rungs.map(\.rendition) == [.transcodedAudio(.aac)])
    #expect(stream.epoch.layout == .separate)
    #expect(stream.status.warnings == [])
  }

  @Test func `Where no worker may run, no AAC is promised, and one warning says what is missing`() async throws {
    let room = WorkerRoom(take: { _, _ in .full }, giveBack: { _, _ in Issue.record("nothing was taken") })
    let tracks = [try SyntheticMedia.video(), try surround()]
    let stream = try await publishing(StreamSettings(), [tracks, tracks], room: room)
    #expect(stream.epoch.rungs.isEmpty && stream.epoch.layout == .interleaved)
    #expect(stream.status.warnings.count == 1 && stream.status.warnings.first?.contains("AC-3") == true)
  }

  @Test func `What all browsers play has nothing beside it`() async throws {
    let stream = try await publishing(StreamSettings(), [[try SyntheticMedia.video(), try SyntheticMedia.audio()]])
    #expect(stream.epoch.rungs.isEmpty && stream.epoch.layout == .interleaved)
  }

  @Test func `Where the setting is the source's audio, there is a warning instead`() async throws {
    let stream = try await publishing(
      StreamSettings { $0.addsPlayableAudio = false }, [[try SyntheticMedia.video(), try surround()]])
    #expect(stream.epoch.rungs.isEmpty && stream.epoch.layout == .interleaved)
    #expect(stream.status.warnings.count == 1)
  }

  @Test func `Another codec that the setting names is the only one`() async throws {
    let settings = StreamSettings { ($0.layout, $0.audio) = (.separate, AudioSpecification(.opus)) }
    let stream = try await publishing(settings, [[try SyntheticMedia.video(), try surround()]])
    #expect(stream.epoch.rungs.map(\.rendition) == [.transcodedAudio(.opus)])
  }

  @Test func `AC-3 that comes after other media changes nothing that players know`() async throws {
    let video = try SyntheticMedia.video()
    let stream = try await publishing(
      StreamSettings(), [[video, try SyntheticMedia.audio()], [video, try surround()]])
    #expect(stream.epoch.rungs.isEmpty && stream.epoch.layout == .interleaved)
  }
}
