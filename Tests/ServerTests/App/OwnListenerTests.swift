import Base
import Logging
import NIOCore
import RecordingFiles
@testable import Server
import ServerSupport
import Settings
import Support
import Synchronization
import Testing

/// A server takes its listeners as a list: a protocol that no source knows of publishes a stream, which is served and recorded
/// as any other.
@Suite struct OwnListenerTests {
  /// Runs a whole server that speaks RTMP and packets, and gives where it serves pages and takes packets.
  private func serve(
    recording folder: TemporaryFolder,
    _ body: (_ http: SocketAddress, _ packets: SocketAddress) async throws -> Void
  ) async throws {
    let settings = SettingSources(
      flags: [
        "http": ["127.0.0.1:0"], "rtmp": ["127.0.0.1:0"], "record": [folder.path], "keep-free": ["0"], "log": ["json"],
      ], environment: [:])
    let started = StartedServer()
    let server = WeirServer(
      configuration: try ServerConfiguration(loading: settings), logger: started.logger
    ) { _ in
    } protocols: { server in
      let packets = PacketListener(
        PacketListener.Shared(gate: server.streams, clock: server.clock, logger: server.logger))
      started.listener.withLock { $0 = packets }
      let place = PublisherProtocol.Place(setting: "rtmps", address: ListenAddress(host: .ipv4("127.0.0.1"), port: 0))
      return PublisherProtocol.all(server) + [
        PublisherProtocol(listener: packets, places: { _ in [place] }, path: "") { server, _ in server }
      ]
    }
    let running = Task { try await server.run() }
    defer { running.cancel() }
    let port = try await started.httpPort()
    let packets = try #require(started.listener.withLock { $0?.addresses.first })
    try await body(try SocketAddress(ipAddress: "127.0.0.1", port: port), packets)
    running.cancel()
    _ = await running.result
  }

  @Test func whatItPublishesIsServedAndRecorded() async throws {
    let folder = try TemporaryFolder()
    try await serve(recording: folder) { http, packets in
      let publisher = try await HTTPRawClient.connect(to: packets)
      for packet in Self.publication { try await publisher.send(Array(packet.bytes.readableBytesView)) }

      let viewer = try await HTTPRawClient.connect(to: http)
      let programme = try await viewer.get("/live/cam/index.m3u8").text
      #expect(programme.contains("CODECS=\"avc1.64001E,mp4a.40.2\""))
      #expect(programme.components(of: "/audio-3/index.m3u8") == 1)
      let address = try #require(programme.split(separator: "\n").first { $0.hasSuffix("/video/index.m3u8") })
      let base = "/live/cam/\(address.dropLast("video/index.m3u8".count))av/"
      let playlist = try await viewer.get("\(base)index.m3u8").text
      #expect(playlist.contains("#EXTINF:2.0"))
      let initSegment = try await viewer.get("\(base)init-1.mp4").body
      #expect(Box.parse(initSegment)?.last?.all("trak").count == 2)
      let segment = try await viewer.get("\(base)1.m4s").body
      #expect(Box.parse(segment)?.first { $0.type == "moof" }?.all("traf").count == 2)
      let playable = try await viewer.get("\(base)1.mp4").body
      #expect(playable == initSegment + segment)

      let status = try await viewer.get("/api/v1/streams").text
      #expect(status.components(of: "\"kind\":\"audio\"") == 3 && status.components(of: "\"kind\":\"video\"") == 1)
      #expect(status.contains("PACKETS"))

      try await publisher.send(Array(PacketListener.Packet(kind: .end).bytes.readableBytesView))
      let recordings = folder.path + "/cam"
      var streams = ""
      for _ in 0..<500 where !streams.hasPrefix("video") {
        try await Task.sleep(for: .milliseconds(20))
        streams = try await run(
          "ffprobe -v error -show_entries stream=codec_type,nb_frames -of csv=p=0 $(ls \(recordings)/*Z.mp4) 2>/dev/null"
        )
      }
      #expect(streams == "video,200\naudio,375\naudio,375\naudio,375\n")
    }
  }

  /// Eight seconds of video and three tracks of audio, of which the clock wraps after half a second.
  private static var publication: [PacketListener.Packet] {
    typealias Packet = PacketListener.Packet
    let start = Packet.range - 45_000
    var packets = [
      Packet(kind: .name, payload: Array("cam".utf8)), Packet(kind: .h264Configuration, track: 1, payload: avc25),
    ]
    packets += (UInt32(2)...4).map { Packet(kind: .aacConfiguration, track: $0, payload: [0x11, 0x90]) }
    var audioSamples: UInt64 = 0
    for frame in UInt64(0)..<200 {
      let slice = [frame % 50 == 0 ? 0x65 : 0x41] + [UInt8](repeating: 0x88, count: 20)
      packets.append(Packet(kind: .frame, track: 1, time: start + frame * 3600, payload: [0, 0, 0, 21] + slice))
      while audioSamples * 1920 < (frame + 1) * 3600 {
        packets += (UInt32(2)...4).map {
          Packet(
            kind: .audio, track: $0, time: start + audioSamples * 1920,
            payload: [0x21, 0x10, 0x04, 0x60, 0x8C, UInt8($0)])
        }
        audioSamples += 1
      }
    }
    return packets
  }

  /// H.264 High, 25 frames a second.
  private static let avc25 = SyntheticMedia.hex(
    "0164001effe1001a6764001eacd940a02ff97011000003000100000300320f162d9601000468ef8fcbfdf8f800")
}

extension String {
  fileprivate func components(of text: String) -> Int {
    split(separator: text, omittingEmptySubsequences: false).count - 1
  }
}

/// Hears from a server's log where it serves pages.
private final class StartedServer: Sendable {
  private let port = Mutex<Int?>(nil)
  let listener = Mutex<PacketListener?>(nil)

  var logger: Logger { Logger(label: "test") { _ in Handler(server: self) } }

  func httpPort() async throws -> Int {
    for _ in 0..<500 {
      if let port = port.withLock({ $0 }) { return port }
      try await Task.sleep(for: .milliseconds(20))
    }
    throw RecordingError("the server does not start")
  }

  private struct Handler: LogHandler {
    let server: StartedServer
    var metadata = Logger.Metadata()
    var logLevel = Logger.Level.info
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }
    func log(event: LogEvent) {
      guard let address = event.metadata?["http"].map({ "\($0)" }) else { return }
      server.port.withLock { $0 = address.split(separator: ":").last.flatMap { Int($0) } }
    }
  }
}
