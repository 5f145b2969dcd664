import Base
@testable import Delivery
import FMP4
import HTTP
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import Publishing
import Storage
@testable import Streams
import StreamSupport
import Support
import Synchronization
import Testing

@Suite struct ThumbnailsTests {
  private let clock = SteadyClock(ClockReading(wall: EpochDriver.wall, monotonic: 0)) { 1_000_000_000_000 }
  private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
  private var loop: any EventLoop { MultiThreadedEventLoopGroup.singleton.any() }

  /// Counts thumbnails, and keeps what they were made of.
  private final class Studio: Sendable {
    let made = Mutex<[ByteBuffer]>([])
    let fails: Bool

    init(fails: Bool = false) {
      self.fails = fails
    }

    struct Blind: Error {}

    func make(_ sample: ByteBuffer, _ track: TrackDescription) throws -> ByteBuffer {
      made.withLock { $0.append(sample) }
      if fails { throw Blind() }
      return ByteBuffer(string: "jpeg \(track.id.rawValue)")
    }
  }

  private func stream(_ tracks: [TrackDescription], seconds: Int) async throws -> (LiveStream, any MediaSink) {
    let registry = StreamRegistry(
      settings: { _ in StreamSettings() }, clock: clock, logger: logger
    ) { _, _, _, _ in [] }
    let name = try #require(StreamName("cam"))
    let request = PublishRequest(stream: name, key: nil, protocolName: "RTMP", remoteAddress: "10.0.0.1:5") { _ in }
    let sink = try await registry.admit(request)
    _ = sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: clock.wallTime)))
    if !tracks.isEmpty { _ = sink.receive(.tracks(tracks)) }
    for sample in SyntheticMedia.interleaved(seconds: seconds) where tracks.contains(where: { $0.id == sample.track }) {
      _ = sink.receive(.sample(sample))
    }
    return (try #require(registry.stream(name)), sink)
  }

  private func answer(_ thumbnails: Thumbnails, _ stream: LiveStream) async throws -> HTTPResponse {
    try await thumbnails.answer(for: stream, on: loop).response(on: loop).get()
  }

  private func body(_ response: HTTPResponse) -> String {
    guard case .pieces(let pieces) = response.body, case .bytes(let buffer)? = pieces.first else { return "" }
    return String(buffer: buffer)
  }

  @Test func oneKeyFrameIsDecodedForAllRequestsWithinASegment() async throws {
    let studio = Studio()
    let thumbnails = Thumbnails(logger: logger, pool: NIOThreadPool.singleton, make: studio.make)
    let (stream, _) = try await stream([try SyntheticMedia.video(), try SyntheticMedia.audio()], seconds: 5)
    let responses = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<50 { group.addTask { self.body(try await self.answer(thumbnails, stream)) } }
      return try await group.reduce(into: Set<String>()) { $0.insert($1) }
    }
    #expect(responses == ["jpeg 1"])
    let window = stream.epoch.window
    let keyFrame = try #require(window.newestKeyFrame)
    #expect(keyFrame.segment == window.segments.last?.sequenceNumber)
    let made = studio.made.withLock { $0 }
    #expect(made.count == 1)
    // Each sample of the synthetic video is one byte, repeated.
    let run = try #require(window.segments.last?.fragments.first?.runs.first { $0.track == .video })
    #expect(made.first?.readableBytes == run.firstSampleLength)
    let response = try await answer(thumbnails, stream)
    #expect(response.headers.contains(HeaderField("Content-Type", "image/jpeg")))
    #expect(response.headers.contains(HeaderField("Cache-Control", "public, max-age=1")))
    #expect(response.entityTag == "\"\(stream.status.epoch)-\(keyFrame.segment)\"")
  }

  @Test func theNextSegmentBringsTheNextThumbnail() async throws {
    let studio = Studio()
    let thumbnails = Thumbnails(logger: logger, pool: NIOThreadPool.singleton, make: studio.make)
    let (stream, sink) = try await stream([try SyntheticMedia.video(), try SyntheticMedia.audio()], seconds: 3)
    let first = try await answer(thumbnails, stream)
    for sample in SyntheticMedia.interleaved(seconds: 9) { _ = sink.receive(.sample(sample)) }
    let second = try await answer(thumbnails, stream)
    #expect(first.entityTag != second.entityTag)
    #expect(studio.made.withLock { $0.count } == 2)
  }

  @Test func bitsThatAreNoFrameAreTriedOnce() async throws {
    let studio = Studio(fails: true)
    let thumbnails = Thumbnails(logger: logger, pool: NIOThreadPool.singleton, make: studio.make)
    let (stream, _) = try await stream([try SyntheticMedia.video(), try SyntheticMedia.audio()], seconds: 3)
    for _ in 0..<3 { #expect(try await answer(thumbnails, stream).status.code == 500) }
    #expect(studio.made.withLock { $0.count } == 1)
  }

  @Test func withoutVideoThereIsNoneAndBeforeTheFirstFrameHasToWait() async throws {
    let thumbnails = Thumbnails(logger: logger, pool: NIOThreadPool.singleton)
    let (audio, _) = try await stream([try SyntheticMedia.audio()], seconds: 3)
    #expect(try await answer(thumbnails, audio).status.code == 404)
    for tracks in [[], [try SyntheticMedia.video()]] {
      let (starting, _) = try await stream(tracks, seconds: 0)
      let response = try await answer(thumbnails, starting)
      #expect(response.status.code == 503)
      #expect(response.headers.contains(HeaderField("Retry-After", "1")))
    }
  }
}
