@testable import API
@testable import Base
import FMP4
import Glibc
import HTTP
import LocalSources
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
@testable import Publishing
import Storage
@testable import Streams
import StreamSupport
import Support
import Synchronization
import Testing

@Suite struct MetricsReportTests {
  private final class Hands: Sendable {
    let now = Mutex<MonotonicTime>(1_000_000_000_000)
    func advance(seconds: Int64) { now.withLock { $0 += seconds * 1_000_000_000 } }
    var clock: SteadyClock {
      SteadyClock(ClockReading(wall: EpochDriver.wall, monotonic: 0)) { self.now.withLock { $0 } }
    }
  }

  private let hands = Hands()
  private let registry: StreamRegistry
  private let viewers: ViewerRegistry
  private let report: MetricsReport

  init() {
    registry = StreamRegistry(
      settings: { _ in StreamSettings() }, clock: hands.clock,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { _, _, _, _ in [] }
    viewers = ViewerRegistry(limit: 10_000, clock: hands.clock)
    report = MetricsReport(
      streams: registry, viewers: viewers, recordings: nil, sources: SourceRegistry([]), traffic: HTTPTraffic(),
      capacity: {
        ServerCapacity(
          streams: 10, connections: 20, descriptors: 100, mediaBytes: 1 << 30, mediaBytesPerStream: 1 << 29)
      }
    ) { ConnectionRefusals(slowed: 2, tooManyUnauthenticated: 0) }
  }

  private func publish(_ name: String, protocolName: String = "RTMP", seconds: Int = 0) async throws -> any MediaSink {
    let request = PublishRequest(
      stream: try #require(StreamName(name)), key: nil, protocolName: protocolName, remoteAddress: "10.0.0.1:5"
    ) { _ in }
    let sink = try await registry.admit(request)
    _ = sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: hands.clock.wallTime)))
    _ = sink.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    if seconds > 0 {
      for sample in SyntheticMedia.interleaved(seconds: seconds) { _ = sink.receive(.sample(sample)) }
    }
    return sink
  }

  /// Every series with its value.
  private func series() throws -> [String: Double] {
    var found: [String: Double] = [:]
    for line in String(buffer: report.sheet(renderTime: nil).text()).split(separator: "\n") where line.first != "#" {
      let space = try #require(line.lastIndex(of: " "))
      let key = String(line[..<space])
      #expect(found[key] == nil, "told twice: \(key)")
      found[key] = Double(line[line.index(after: space)...])
    }
    return found
  }

  @Test func whatAPublisherSendsIsCountedBySampleAndByByte() async throws {
    let sink = try await publish("cam", seconds: 3)
    sink.lost(.video)
    sink.lost(.audio)
    sink.carries(.early(.audio))
    sink.carries(.mendedTime(.audio))
    sink.carries(.correctedAudio)
    _ = sink.receive(.discontinuity)
    let samples = SyntheticMedia.interleaved(seconds: 3)
    let video = try SyntheticMedia.video().id
    let told = try series()
    let cam = "stream=\"cam\",protocol=\"RTMP\""
    #expect(told["weir_ingest_bytes_total{\(cam)}"] == Double(samples.reduce(0) { $0 + $1.payload.readableBytes }))
    #expect(
      told["weir_ingest_frames_total{\(cam),kind=\"video\"}"] == Double(samples.count { $0.track == video }))
    #expect(
      told["weir_ingest_frames_total{\(cam),kind=\"audio\"}"] == Double(samples.count { $0.track != video }))
    #expect(
      told["weir_ingest_keyframes_total{\(cam)}"] == Double(samples.count { $0.track == video && $0.isSync }))
    #expect(told["weir_ingest_frames_lost_total{\(cam),kind=\"video\"}"] == 1)
    #expect(told["weir_ingest_frames_lost_total{\(cam),kind=\"audio\"}"] == 1)
    #expect(told["weir_ingest_timestamps_mended_total{\(cam),kind=\"video\"}"] == 0)
    #expect(told["weir_ingest_timestamps_mended_total{\(cam),kind=\"audio\"}"] == 1)
    #expect(told["weir_ingest_audio_corrections_total{\(cam)}"] == 1)
    #expect(told["weir_ingest_timestamp_jumps_total{\(cam)}"] == 1)
    #expect(told["weir_stream_live{stream=\"cam\"}"] == 1)
    #expect(abs(try #require(told["weir_av_skew_seconds{stream=\"cam\"}"])) < 0.1)
    #expect(told["weir_publish_rejected_total{reason=\"slowed\"}"] == 2)
  }

  @Test func eachProtocolKeepsItsCount() async throws {
    let first = try await publish("cam", seconds: 1)
    _ = first.receive(.end(.connectionLost("test")))
    let second = try await publish("cam", protocolName: "RTMPS", seconds: 2)
    let told = try series()
    let (one, two) = (
      told["weir_ingest_bytes_total{stream=\"cam\",protocol=\"RTMP\"}"],
      told["weir_ingest_bytes_total{stream=\"cam\",protocol=\"RTMPS\"}"]
    )
    #expect(try #require(one) < #require(two))
    _ = second.receive(.end(.connectionLost("test")))
    _ = try await publish("cam", seconds: 1)
    let after = try series()
    #expect(after["weir_ingest_bytes_total{stream=\"cam\",protocol=\"RTMP\"}"] == one.map { $0 * 2 })
    #expect(after["weir_ingest_bytes_total{stream=\"cam\",protocol=\"RTMPS\"}"] == two)
    #expect(after["weir_ingest_publications_total{stream=\"cam\"}"] == 3)
  }

  @Test func whatComesEarlyToAStreamThatHasBegunIsNotLost() async throws {
    let first = try await publish("cam", seconds: 3)
    _ = first.receive(.end(.connectionLost("test")))
    let cam = try #require(StreamName("cam"))
    let request = PublishRequest(stream: cam, key: nil, protocolName: "RTMP", remoteAddress: "10.0.0.1:6") { _ in }
    let second = try await registry.admit(request)
    second.carries(.early(.video))
    let told = try series()
    let video = "stream=\"cam\",protocol=\"RTMP\",kind=\"video\""
    #expect(told["weir_ingest_frames_lost_total{\(video)}"] == 0)
  }

  @Test func viewersAreCountedByHowTheyWatch() async throws {
    _ = try await publish("cam", seconds: 3)
    let cam = try #require(StreamName("cam"))
    for (number, name) in ["index.m3u8", "manifest.mpd", "stream.mp4", "7.m4s", "t2-90000.m4s", "init-1.mp4"]
      .enumerated()
    {
      _ = viewers.touch(
        stream: cam, client: ClientID(number: number), lifetime: MediaTime(milliseconds: 6000),
        delivery: ViewerProtocol(lastPathSegment: name))
    }
    // An init segment does not tell; what was known stays.
    _ = viewers.touch(
      stream: cam, client: ClientID(number: 0), lifetime: MediaTime(milliseconds: 6000),
      delivery: ViewerProtocol(lastPathSegment: "init-1.mp4"))
    let told = try series()
    #expect(told["weir_viewers{stream=\"cam\",protocol=\"hls\"}"] == 2)
    #expect(told["weir_viewers{stream=\"cam\",protocol=\"dash\"}"] == 2)
    #expect(told["weir_viewers{stream=\"cam\",protocol=\"mp4\"}"] == 1)
    #expect(told["weir_viewers{stream=\"cam\",protocol=\"unknown\"}"] == 1)
    #expect(viewers.count(of: cam) == 6)
    hands.advance(seconds: 7)
    #expect(try series()["weir_viewers{stream=\"cam\",protocol=\"hls\"}"] == 0)
  }

  @Test func twoHundredStreamsAreFewerThanTwoThousandSeries() async throws {
    for number in 0..<200 { _ = try await publish("cam\(number)", seconds: 1) }
    let start = ContinuousClock.now
    let sheet = report.sheet(renderTime: 1)
    let text = sheet.text()
    let time = ContinuousClock.now - start
    let named = String(buffer: text).split(separator: "\n").count { $0.hasPrefix("weir_stream_live{") }
    #expect(named == StreamRegistry.namedInMetrics + 1)
    // Recorded, with a ladder and audio in another codec each stream has twelve more.
    #expect(sheet.count + 12 * named < 2000, "\(sheet.count) series")
    #expect(time < .milliseconds(200), "\(time)")
    if getenv("WEIR_METRICS_TIME") != nil { print("\(sheet.count) series, \(text.readableBytes) bytes, \(time)") }
  }

  @Test func noCounterFallsWhenOneOfTheOthersGoes() async throws {
    for number in 0..<StreamRegistry.namedInMetrics { _ = try await publish("cam\(number)") }
    let late = try await publish("late", seconds: 2)
    let later = try await publish("later", seconds: 1)
    let others = "weir_ingest_bytes_total{stream=\"_other\",protocol=\"RTMP\"}"
    let before = try #require(try series()[others])
    #expect(before > 0)
    _ = late.receive(.end(.finished))
    hands.advance(seconds: 100)
    registry.tend()
    #expect(registry.stream(try #require(StreamName("late"))) == nil)
    #expect(try series()[others] == before)
    for sample in SyntheticMedia.interleaved(seconds: 1) { _ = later.receive(.sample(sample)) }
    #expect(try #require(try series()[others]) > before)
  }

  @Test func whoAsksMeanwhileOrRightAfterwardsGetsTheSameAnswer() async throws {
    _ = try await publish("cam", seconds: 5)
    let routes = MetricsRoutes(report: report, clock: hands.clock, pool: NIOThreadPool.singleton)
    let loop = MultiThreadedEventLoopGroup.singleton.any()
    func text() async throws -> String {
      let response = try await routes.metrics(on: loop).response(on: loop).get()
      guard case .pieces(let pieces) = response.body, case .bytes(let bytes) = pieces.first else {
        return ""
      }
      return String(buffer: bytes)
    }
    let first = try await text()
    #expect(first.contains("weir_stream_live{stream=\"cam\"} 1\n"))
    _ = try await publish("new", seconds: 5)
    #expect(try await text() == first)
    hands.advance(seconds: 1)
    #expect(try await text().contains("weir_stream_live{stream=\"new\"} 1\n"))
  }

  @Test func theServerIsReadyUntilItAdmitsNoPublisherAnyMore() {
    let routes = MetricsRoutes(report: report, clock: hands.clock, pool: NIOThreadPool.singleton)
    #expect(routes.readiness.status == .ok)
    registry.shutDown()
    #expect(routes.readiness.status == .serviceUnavailable)
    #expect(routes.health.status == .ok)
  }

  @Test func whatTheKernelSaysOfThisProcessIsPlausible() throws {
    let figures = ProcessFigures.read()
    #expect(try #require(figures.residentBytes) > 1 << 20)
    #expect(try #require(figures.virtualBytes) >= #require(figures.residentBytes))
    #expect(try #require(figures.cpuSeconds) > 0)
    #expect(try #require(figures.openDescriptors) >= 3)
    #expect(try #require(figures.descriptorLimit) >= #require(figures.openDescriptors))
    let started = try #require(figures.startSeconds)
    let now = Double(time(nil))
    #expect(started <= now + 1 && started > now - 3600)
  }
}
