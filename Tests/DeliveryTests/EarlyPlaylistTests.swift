import Delivery
import FMP4
@testable import HTTP
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
@testable import Playlists
import Publishing
@testable import Streams
import StreamSupport
import Support
import Testing

/// Playlists before the first whole segment. Media comes sample by sample.
@Suite(.timeLimit(.minutes(1))) struct EarlyPlaylistTests {
  private static let twoSeconds = MediaTime(milliseconds: 2000)

  // MARK: When there is something to list

  /// Media from the first key frame on until parts alone can be listed. Nil if a whole segment could be before.
  private func wait(of driver: inout EpochDriver) throws -> MediaTime? {
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    try driver.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 5) {
      try driver.receive(.sample(sample))
      let window = driver.epoch.window
      if window.listsPartsAlone { return time(sample) }
      if window.listsMedia { return nil }
    }
    return nil
  }

  private func time(_ sample: Sample) -> MediaTime {
    MediaTime(ticks: sample.decodeTime, timescale: sample.track == .video ? 30_000 : 48_000)
  }

  private func list(_ driver: EpochDriver, from start: HLSStart = .wholeSegment) -> String {
    var playlist = HLSMediaPlaylist(window: driver.epoch.window, lowLatency: HLSMediaPlaylist.LowLatency())
    playlist.start = start
    return String(buffer: playlist.render())
  }

  @Test func aKnownGroupListsTheFirstPartAtOnce() throws {
    var driver = EpochDriver(knownGroup: Self.twoSeconds)
    let found = try wait(of: &driver)
    let first = try #require(found)
    #expect(first <= MediaTime(milliseconds: 300), "\(first.seconds) s")
    let early = list(driver)
    #expect(early.contains("#EXT-X-PART:") && !early.contains("#EXTINF:"))
    #expect(early.contains("#EXT-X-TARGETDURATION:2\n") && early.contains("#EXT-X-MEDIA-SEQUENCE:1\n"))
    #expect(!driver.epoch.window.isReleased, "players that know no parts wait")
  }

  @Test func aGapInFrontIsASegmentUntilThreeTargetDurationsAreListed() throws {
    let part = "#EXT-X-PART:DURATION=0.200000,URI=\"0.0.m4s\",GAP=YES\n"
    let gap = part + "#EXT-X-GAP\n#EXTINF:0.200000,\n0.m4s\n"
    var driver = EpochDriver(knownGroup: Self.twoSeconds)
    let found = try wait(of: &driver)
    _ = try #require(found)
    let early = list(driver, from: .gap)
    #expect(early.contains("#EXT-X-VERSION:8\n") && early.contains("#EXT-X-MEDIA-SEQUENCE:1\n"))
    let map = "#EXT-X-MAP:URI=\"init-1.mp4\"\n"
    #expect(early.contains("#EXT-X-START:TIME-OFFSET=0.200000\n\(map)\(gap)"))
    #expect(early.split(separator: "#EXT-X-MAP").count == 2)
    #expect(early.contains("URI=\"1.0.m4s\",INDEPENDENT=YES\n"))

    // Each segment has a number that is one higher than its own.
    var young = EpochDriver(knownGroup: Self.twoSeconds)
    try young.publish(seconds: 5)
    let some = list(young, from: .gap)
    #expect(some.contains("#EXT-X-MEDIA-SEQUENCE:1\n") && some.contains("\n\(map)\(gap)"))
    #expect(some.contains(",\n2.m4s\n") && !some.contains("#EXT-X-START"))
    var older = EpochDriver(knownGroup: Self.twoSeconds)
    try older.publish(seconds: 7)
    let whole = list(older, from: .gap)
    #expect(whole.contains("#EXT-X-MEDIA-SEQUENCE:2\n") && whole.contains(",\n1.m4s\n"))
    #expect(!whole.contains("#EXT-X-GAP"))
    #expect(list(older).contains("#EXT-X-MEDIA-SEQUENCE:1\n"))
  }

  @Test func aConfiguredTargetDoesTheSame() throws {
    var settings = StreamSettings()
    settings.targetDuration = .seconds(4)
    var driver = EpochDriver(settings)
    let found = try wait(of: &driver)
    let first = try #require(found)
    #expect(first <= MediaTime(milliseconds: 300))
    #expect(list(driver).contains("#EXT-X-TARGETDURATION:4\n"))
  }

  @Test func anUnknownGroupListsNothingBeforeAWholeSegment() throws {
    var driver = EpochDriver()
    let found = try wait(of: &driver)
    #expect(found == nil)
    #expect(driver.epoch.window.listsMedia)
  }

  @Test func theWholeListFollowsWithTheSamePromises() throws {
    var driver = EpochDriver(knownGroup: Self.twoSeconds)
    try driver.publish(seconds: 3)
    #expect(!driver.epoch.window.listsPartsAlone && driver.epoch.window.isReleased)
    let whole = list(driver)
    #expect(whole.contains("#EXTINF:2.000000,\n1.m4s\n") && whole.contains("#EXT-X-TARGETDURATION:2\n"))
  }

  @Test func whatAnEncoderAnnouncesCountsBeforeItsMedia() throws {
    var announced = EpochDriver()
    announced.epoch.foresee(group: MediaTime(milliseconds: 4000))
    let found = try wait(of: &announced)
    #expect(found != nil)
    #expect(announced.epoch.window.targetDuration == 4)

    var late = EpochDriver()
    late.epoch.startPublication()
    try late.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 1) { try late.receive(.sample(sample)) }
    late.epoch.foresee(group: MediaTime(milliseconds: 4000))
    #expect(late.epoch.window.targetDuration == nil && !late.epoch.window.listsPartsAlone)
  }

  @Test func anEpochOfAnotherProcessWaitsAsBefore() throws {
    var driver = EpochDriver()
    try driver.publish(seconds: 5)
    try driver.interrupt()
    var resumed = Epoch(resuming: try #require(driver.epoch.wholeRecord), settings: StreamSettings())
    resumed.foresee(group: Self.twoSeconds)
    #expect(resumed.window.targetDuration == driver.epoch.window.targetDuration && !resumed.window.isForeseen)
  }

  @Test func aGroupLongerThanTheKnownOneIsCutAtTheTargetAndTold() throws {
    var driver = EpochDriver(knownGroup: Self.twoSeconds)
    try driver.publish(seconds: 12, group: 90)
    let complete = driver.epoch.window.segments.filter(\.isComplete)
    #expect(driver.epoch.window.targetDuration == 2 && complete.count > 3)
    #expect(complete.allSatisfy { $0.duration < MediaTime(milliseconds: 2500) })
    #expect(!driver.epoch.window.isIndependent)
    var warnings = StreamWarnings()
    let judged = warnings.judge(driver.epoch, segmentTarget: Self.twoSeconds)
    let told = try #require(judged)
    #expect(told.hasPrefix("key frames are 3.0 s apart or more, so segments begin without one"))

    var kept = EpochDriver(knownGroup: Self.twoSeconds)
    try kept.publish(seconds: 12)
    warnings.beginEpoch()
    let none = warnings.judge(kept.epoch, segmentTarget: Self.twoSeconds)
    #expect(none == nil)
  }

  // MARK: Who gets it

  /// A stream whose publisher sends as the test goes on.
  private struct Live {
    let routes: LiveRoutes
    let stream: LiveStream
    let sink: any MediaSink
    let loop = MultiThreadedEventLoopGroup.singleton.next()

    func ask(_ target: String) throws -> HTTPAnswer {
      routes.respond(to: HTTPRequest(method: .get, target: try RequestTarget(parsing: target)), on: loop)
    }

    func text(_ answer: HTTPAnswer) async throws -> String {
      let response = try await answer.response(on: loop).get()
      return String(buffer: try #require(response.playlist).body)
    }

    func text(_ target: String) async throws -> String { try await text(ask(target)) }
  }

  private func live(_ keyFrames: PublishRequest.KeyFrames) async throws -> Live {
    let time = ManualClock()
    let registry = StreamRegistry(
      settings: { _ in StreamSettings() }, clock: time.clock,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { _, _, _, _ in [] }
    let name = try #require(StreamName("cam"))
    let sink = try await registry.admit(
      PublishRequest(
        stream: name, key: nil, protocolName: "RTMP", remoteAddress: "10.0.0.1:5", host: "10.0.0.1", origin: .peer,
        keyFrames: keyFrames
      ) { _ in })
    let routes = LiveRoutes(
      streams: registry, viewers: ViewerRegistry(limit: 100, clock: time.clock),
      thumbnails: Thumbnails(
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, pool: NIOSingletons.posixBlockingThreadPool),
      archive: nil, status: { _ in StandardResponse.preflight })
    return Live(routes: routes, stream: try #require(registry.stream(name)), sink: sink)
  }

  private func isPending(_ answer: HTTPAnswer) -> Bool {
    if case .later = answer.kind { true } else { false }
  }

  /// Sends the media between two times.
  private func send(_ live: Live, from start: Int64, until end: Int64) {
    for sample in SyntheticMedia.interleaved(seconds: 4) {
      let milliseconds = time(sample).rescaled(to: 1000)
      if (start..<end).contains(milliseconds) { _ = live.sink.receive(.sample(sample)) }
    }
  }

  private func begin(_ live: Live) throws {
    _ = live.sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    _ = live.sink.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
  }

  @Test func whoStartsWithPartsHasThemAndAllOthersWaitForASegment() async throws {
    let live = try await live(.every(Self.twoSeconds))
    let (early, plain) = (try live.ask("/live/cam/index.m3u8?start=parts"), try live.ask("/live/cam/index.m3u8"))
    #expect(isPending(early) && isPending(plain))
    try begin(live)
    send(live, from: 0, until: 300)
    let list = "\(live.stream.epoch.id)/av/index.m3u8"
    let (top, other) = (try await live.text(early), try await live.text(plain))
    #expect(top.hasSuffix("\n\(list)?start=parts\n") && other.hasSuffix("\n\(list)\n"))
    let parts = try await live.text("/live/cam/\(list)?start=parts")
    #expect(parts.contains("#EXT-X-PART:") && !parts.contains("#EXTINF:"))
    let whole = try live.ask("/live/cam/\(list)")
    #expect(isPending(whole))
    send(live, from: 300, until: 3000)
    let segments = try await live.text(whole)
    #expect(segments.contains("#EXTINF:2.000000,\n1.m4s\n"))
    // From then on the query makes no difference.
    for address in ["/live/cam/index.m3u8", "/live/cam/\(list)"] {
      let (plain, asked) = (try await live.text(address), try await live.text("\(address)?start=parts"))
      #expect(plain == asked && !asked.contains("start=parts"))
    }
  }

  @Test func whoNeedsASegmentHasAGapAndCountsItFromThenOn() async throws {
    let live = try await live(.every(Self.twoSeconds))
    let early = try live.ask("/live/cam/index.m3u8?start=gap")
    try begin(live)
    send(live, from: 0, until: 300)
    let list = "/live/cam/\(live.stream.epoch.id)/av/index.m3u8"
    let top = try await live.text(early)
    #expect(top.hasSuffix("/av/index.m3u8?start=gap\n"))
    let (first, parts) = (try await live.text("\(list)?start=gap"), try await live.text("\(list)?start=parts"))
    #expect(first.contains("#EXT-X-GAP\n") && !parts.contains("#EXT-X-GAP"))
    // The next part of segment 1, which is number 2 there.
    let next = first.split(separator: "\n").count { $0.hasPrefix("#EXT-X-PART:") } - 1
    let awaited = try live.ask("\(list)?start=gap&_HLS_msn=2&_HLS_part=\(next)")
    #expect(isPending(awaited))
    send(live, from: 300, until: 3000)
    let later = try await live.text(awaited)
    #expect(later.contains("#EXT-X-MEDIA-SEQUENCE:1\n") && later.contains("#EXT-X-GAP\n"))
    let plain = try await live.text("\(list)?_HLS_msn=1&_HLS_part=0")
    #expect(plain.contains("#EXT-X-MEDIA-SEQUENCE:1\n") && !plain.contains("#EXT-X-GAP"))
  }

  @Test func whatAnOwnSourceKeepsCountsAndNotWhatItsNameHadBefore() throws {
    let settings = StreamSettings()
    let measured = MediaTime(milliseconds: 6000)
    let own = PublishRequest.KeyFrames.every(Self.twoSeconds)
    #expect(own.promised(for: settings, measured: measured) == Self.twoSeconds)
    #expect(PublishRequest.KeyFrames.asAsked.promised(for: settings, measured: measured) == measured)
    #expect(PublishRequest.KeyFrames.asAsked.promised(for: settings, measured: nil) == settings.segmentTarget)
    #expect(PublishRequest.KeyFrames.asItsEncoderHasThem.promised(for: settings, measured: measured) == nil)
  }

  @Test func withoutAKnownGroupTheQueryMakesNoDifference() async throws {
    let live = try await live(.asItsEncoderHasThem)
    let (early, plain) = (try live.ask("/live/cam/index.m3u8?start=parts"), try live.ask("/live/cam/index.m3u8"))
    try begin(live)
    send(live, from: 0, until: 1900)
    #expect(live.stream.epoch.window.targetDuration == nil)
    send(live, from: 1900, until: 3000)
    let (text, same) = (try await live.text(early), try await live.text(plain))
    #expect(text == same && !text.contains("start=parts"))
  }

  @Test func theAnnouncementOfAPublisherReachesItsStream() async throws {
    let live = try await live(.asItsEncoderHasThem)
    live.sink.carries(.keyFrameDistance(MediaTime(milliseconds: 4000)))
    #expect(live.stream.targetDuration == 4)
    try begin(live)
    send(live, from: 0, until: 300)
    let text = try await live.text("/live/cam/\(live.stream.epoch.id)/av/index.m3u8?start=parts")
    #expect(text.contains("#EXT-X-PART:") && text.contains("#EXT-X-TARGETDURATION:4\n"))
  }
}
