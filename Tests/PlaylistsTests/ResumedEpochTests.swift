import FMP4
import NIOCore
@testable import Playlists
@testable import Streams
import StreamSupport
import Support
import Testing
import Transcode

/// An epoch that goes on in another process, by its record alone.
@Suite struct ResumedEpochTests {
  private func interrupted(_ settings: StreamSettings = StreamSettings()) throws -> EpochDriver {
    var driver = EpochDriver(settings)
    try driver.publish(seconds: 7)
    return driver
  }

  /// The next process: from the record, a publication of both tracks that begins so many seconds after the first one did.
  private func resumed(
    _ record: EpochRecord, seconds: Int, settings: StreamSettings = StreamSettings(), after pause: Int64 = 20
  ) throws -> Epoch {
    var epoch = Epoch(resuming: record, settings: settings.asServed)
    epoch.startPublication()
    _ = try epoch.receive(
      .clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall &+ pause &* 1_000_000_000)))
    _ = try epoch.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: seconds) { _ = try epoch.receive(.sample(sample)) }
    return epoch
  }

  private func playlist(_ epoch: Epoch, parts: Bool = false) -> String {
    let offer = HLSMediaPlaylist.LowLatency(addressing: .url, siblings: [], isDelta: false)
    let playlist = HLSMediaPlaylist(window: epoch.window, rendition: .interleaved, lowLatency: parts ? offer : nil)
    return String(buffer: playlist.render())
  }

  @Test func numbersAndPromisesGoOn() throws {
    var driver = try interrupted()
    try driver.interrupt()
    let before = driver.epoch
    let record = try #require(before.wholeRecord)
    let after = try resumed(record, seconds: 5)

    #expect(after.id == before.id)
    #expect(after.availabilityStart == before.availabilityStart)
    #expect(after.window.targetDuration == before.window.targetDuration)
    #expect(after.window.partTarget == before.window.partTarget)
    #expect(after.window.segments.first?.sequenceNumber == (before.window.segments.last?.sequenceNumber ?? 0) + 1)
    let firstMedia = try #require(after.window.segments.first { !$0.isOutage })
    #expect(firstMedia.followsDiscontinuity)
    #expect(after.window.currentInit?.version == (before.window.currentInit?.version ?? 0) + 1)
    // No media time is used twice: DASH addresses segments by it.
    let end = try #require(before.mediaEnd)
    #expect(firstMedia.start >= end)
    #expect(try #require(after.window.periods.first?.ordinal) > (before.window.periods.last?.ordinal ?? .max))
  }

  @Test func thePlaylistBeginsWithTheTimeWithoutAPublisher() throws {
    var driver = try interrupted()
    try driver.interrupt()
    let after = try resumed(try #require(driver.epoch.wholeRecord), seconds: 5)
    let gaps = after.window.segments.filter(\.isOutage)
    #expect(gaps.map(\.sequenceNumber) == Array(5..<5 + gaps.count))
    // They begin with the last three segments that were listed, which hlsdemux2 knows: of seven seconds the last five. The
    // publisher was back after twenty.
    #expect(gaps.first?.wallStart == driver.epoch.window.segments.suffix(3).first?.wallStart)
    #expect(abs(gaps.reduce(0) { $0 + $1.duration.seconds } - 18) < 0.1)
    let lines = playlist(after).split(separator: "\n").map(String.init)
    #expect(lines.count { $0 == "#EXT-X-GAP" } == gaps.count && lines.contains("#EXT-X-MEDIA-SEQUENCE:5"))
    var begun = Epoch(resuming: try #require(driver.epoch.wholeRecord), settings: StreamSettings())
    begun.startPublication()
    _ = try begun.receive(
      .clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall &+ 20_000_000_000)))
    _ = try begun.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 1) { _ = try begun.receive(.sample(sample)) }
    #expect(begun.window.hasBegun && !begun.window.isReleased, "gaps alone are no playlist")
  }

  @Test func whatDoesNotGoOnEndsWithAFinalList() throws {
    var driver = try interrupted()
    try driver.interrupt()
    var epoch = Epoch(resuming: try #require(driver.epoch.wholeRecord), settings: StreamSettings())
    #expect(!epoch.window.endedUnresumed && !playlist(epoch).contains("#EXT-X-ENDLIST"))
    _ = try epoch.end(.connectionLost("it did not come back"))
    for parts in [false, true] {
      let lines = playlist(epoch, parts: parts).split(separator: "\n").map(String.init)
      #expect(lines.suffix(3) == ["#EXTINF:2.000000,", "5.m4s", "#EXT-X-ENDLIST"], "\(lines)")
      for line in ["#EXT-X-VERSION:8", "#EXT-X-MEDIA-SEQUENCE:5", "#EXT-X-DISCONTINUITY", "#EXT-X-GAP"] {
        #expect(lines.count { $0 == line } == 1, "\(line)")
      }
      #expect(!lines.contains { $0.hasPrefix("#EXT-X-MAP") || $0.hasPrefix("#EXT-X-PRELOAD-HINT") })
    }
    var other = try resumed(try #require(driver.epoch.wholeRecord), seconds: 5)
    _ = try other.end(.finished)
    #expect(!other.window.endedUnresumed)
  }

  @Test func manifestsListTheLastPeriodUntilPlayersHaveLeftIt() throws {
    var driver = try interrupted()
    try driver.interrupt()
    let record = try #require(driver.epoch.wholeRecord)
    let after = try resumed(record, seconds: 5)
    func periods(_ seconds: Int64) throws -> [XMLElement] {
      let root = DASHManifest(epoch: after.viewWithRungs, source: .server)
        .root(publishTime: EpochDriver.wall + seconds * 1_000_000_000)
      return try XMLText.parse(String(buffer: root.document)).all("Period")
    }
    let early = try periods(25)
    #expect(early.map { $0["id"] } == ["0", "1"])
    #expect(early[0].all("SegmentTimeline").allSatisfy { $0.children.count == 1 })
    #expect(try periods(60).map { $0["id"] } == ["1"])
  }

  @Test func keptPeriodsAreReadAsTheyWereWritten() throws {
    let periods = [
      KeptPeriod(ordinal: 3, end: 12, text: "<Period id=\"3\"></Period>"),
      KeptPeriod(ordinal: 4, end: 15, text: "<Period id=\"4\"><S t=\"1\"/></Period>"),
    ]
    #expect(KeptPeriod.parse(KeptPeriod.text(of: periods)) == periods)
    #expect(KeptPeriod.parse("") == [])
    let hostile = ["x", "1\t2", "1\t2\t<S/>", "-1\t2\t<Period ></Period>", "1\t-2\t<Period ></Period>"]
    for text in hostile + [String(repeating: "1\t2\t<Period ></Period>\n", count: KeptPeriod.limit + 1)] {
      #expect(KeptPeriod.parse(text) == nil, "\(text.prefix(40))")
    }
  }

  /// Who joined before the process died asks the next one for the init segment of its list, also before media comes.
  @Test(arguments: [StreamSettings.HLSLayout.interleaved, .separate])
  func initSegmentsOfTheProcessBeforeStay(layout: StreamSettings.HLSLayout) throws {
    var driver = try interrupted(StreamSettings { $0.layout = layout })
    let known = try #require(driver.epoch.initSegment)
    func judge(_ epoch: Epoch) throws {
      let kept = epoch.viewWithRungs.keptInits
      for rendition in [Rendition.interleaved, .video, .audio] {
        let found = try #require(kept.first { $0.rendition == rendition && $0.version == 1 })
        #expect(found.bytes == known.bytes(of: rendition).map { Array($0.readableBytesView) })
      }
      #expect(KeptInit.parse(KeptInit.text(of: kept)) == kept)
    }
    // Killed: the record is the newest that was written.
    var record = try #require(driver.epoch.wholeRecord?.withMargin())
    try judge(Epoch(resuming: record, settings: StreamSettings { $0.layout = layout }.asServed))
    try driver.interrupt()
    record = try #require(driver.epoch.wholeRecord)
    let after = try resumed(record, seconds: 5, settings: StreamSettings { $0.layout = layout })
    try judge(after)
    #expect(after.initsToKeep.map(\.version) == [1, 1, 1, 2, 2, 2], "of two processes")
  }

  /// A manifest lists the Period before a long outage, whose media is in memory no more.
  @Test func initSegmentsOfAKeptPeriodStay() throws {
    var driver = EpochDriver(StreamSettings { $0.window = MediaTime(milliseconds: 20_000) })
    try driver.publish(seconds: 5)
    try driver.interrupt()
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall + 95_000_000_000)))
    try driver.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.mono()]))
    for sample in SyntheticMedia.interleaved(seconds: 40) { try driver.receive(.sample(sample)) }
    #expect(driver.epoch.window.inits[1] == nil)
    let kept = driver.epoch.viewWithRungs.keptInits
    #expect(kept.map(\.rendition) == [.interleaved, .video, .audio] && kept.allSatisfy { $0.version == 1 })
  }

  @Test func whatIsNoKeptInitSegmentIsNotRead() {
    #expect(KeptInit.parse("") == [])
    let line = "av\t1\tAAAA"
    #expect(KeptInit.parse(line)?.count == 1)
    let hostile = ["x", "av\t1", "av\t0\tAAAA", "av\t-1\tAAAA", "..\t1\tAAAA", "av\t1\t*", "av\t1\tAAAA\tAAAA"]
    let long = "av\t1\t" + String(repeating: "AAAA", count: KeptInit.longest / 3 + 1)
    for text in hostile + [long, Array(repeating: line, count: KeptInit.limit + 1).joined(separator: "\n")] {
      #expect(KeptInit.parse(text) == nil, "\(text.prefix(40))")
    }
  }

  /// ffmpeg and GStreamer stand still for as long as media time leaps.
  @Test func mediaTimeGoesOnWithTheClockAndNotWithTheMargin() throws {
    var driver = try interrupted()
    try driver.interrupt()
    let record = try #require(driver.epoch.wholeRecord)
    let end = record.clockOffset + record.knownEnd * 1_000_000
    func read(_ wall: WallTime) -> Int64 { record.withMargin().read(at: wall).mediaEnd }
    #expect(read(end + 400_000_000) == record.knownEnd + 401)
    // A clock that was set back, media that are ahead of it, and an outage that is longer than the margin.
    for wall in [end - 1_000_000, .zero, .at(.min), end + 60_000_000_000, .max] {
      #expect(read(wall) == record.withMargin().mediaEnd, "\(wall)")
    }
    // Who handed over said all.
    #expect(record.read(at: end + 400_000_000).mediaEnd == record.mediaEnd)
  }

  @Test func aSecondRestartBeforeAnyPublisherListsTheSame() throws {
    var driver = try interrupted()
    try driver.interrupt()
    let record = try #require(driver.epoch.wholeRecord)
    var epoch = Epoch(resuming: record, settings: StreamSettings())
    epoch.startPublication()
    _ = try epoch.receive(.tracks([try SyntheticMedia.video()]))
    #expect(epoch.window.lastListedStart == record.listedFrom && record.listedFrom > 0)
  }

  @Test func thePlaylistGoesOnBehindADiscontinuity() throws {
    var driver = try interrupted()
    try driver.interrupt()
    let after = try resumed(try #require(driver.epoch.wholeRecord), seconds: 5)
    let lines = playlist(after).split(separator: "\n").map(String.init)
    #expect(lines.contains("#EXT-X-MEDIA-SEQUENCE:5"))
    // The break itself is in the playlist, between the gaps and the first segment with media.
    #expect(!lines.contains { $0.hasPrefix("#EXT-X-DISCONTINUITY-SEQUENCE") })
    let gaps = lines.count { $0 == "#EXT-X-GAP" }
    let firstMedia = try #require(lines.firstIndex(of: "\(5 + gaps).m4s"))
    let breaks = lines.indices.filter { lines[$0] == "#EXT-X-DISCONTINUITY" }
    #expect(breaks.count == 1)
    #expect(lines.lastIndex(of: "#EXT-X-GAP").map { $0 < breaks[0] } == true && breaks[0] < firstMedia)
    #expect(lines.contains("#EXT-X-MAP:URI=\"init-2.mp4\""))
  }

  /// hlsdemux2 never finds its place again where a list begins behind the last segment that it knows.
  @Test func inAShortWindowThePlaylistAccountsForTheOtherProcessUntilMediaFillIt() throws {
    var settings = StreamSettings()
    settings.window = MediaTime(milliseconds: 20_000)
    var driver = try interrupted(settings)
    try driver.interrupt()
    let record = try #require(driver.epoch.record)
    for seconds in [2, 3, 5, 7] {
      let epoch = try resumed(record, seconds: seconds, settings: settings, after: 12)
      #expect(epoch.window.listed.first?.wallStart == record.listedFrom, "\(seconds) s")
    }
    let later = try resumed(record, seconds: 14, settings: settings, after: 12)
    #expect(later.window.listed.first?.isOutage == false)
  }

  @Test func partsOfTheFirstSegmentAreNumberedLikeIt() throws {
    var driver = try interrupted()
    try driver.interrupt()
    let after = try resumed(try #require(driver.epoch.wholeRecord), seconds: 1)
    let text = playlist(after, parts: true)
    #expect(!after.window.listsMedia)
    #expect(text.contains("#EXT-X-MEDIA-SEQUENCE:5\n"))
    #expect(!text.contains("#EXT-X-DISCONTINUITY-SEQUENCE"))
    let gaps = after.window.listed.count
    #expect(gaps > 0 && text.contains("URI=\"\(5 + gaps).0.m4s\""))
  }

  @Test func breaksAreCountedOverRestarts() throws {
    var record = try #require(try interrupted().epoch.wholeRecord)
    for expected in 1...3 {
      let epoch = try resumed(record, seconds: 3)
      record = try #require(epoch.wholeRecord)
      #expect(record.breaks == expected)
    }
  }

  @Test func whoMayHaveDiedLeavesRoom() throws {
    let record = try #require(try interrupted().epoch.wholeRecord)
    let careful = record.withMargin()
    #expect(careful.nextSequenceNumber > record.nextSequenceNumber)
    #expect(careful.initVersion > record.initVersion)
    #expect(careful.mediaEnd >= record.mediaEnd + 2 * Int64(record.targetDuration) * 1000)
    #expect(careful.epoch == record.epoch)
    #expect(careful.targetDuration == record.targetDuration)
  }

  @Test func nothingIsToldOfAnEpochThatPromisedNothing() throws {
    var driver = EpochDriver()
    #expect(driver.epoch.wholeRecord == nil)
    driver.epoch.startPublication()
    try driver.receive(.tracks([try SyntheticMedia.video()]))
    #expect(driver.epoch.wholeRecord == nil)
  }

  @Test func aLadderGoesOnWithItsSource() throws {
    var settings = StreamSettings()
    settings.layout = .separate
    settings.ladder = [RungSpecification(shortSide: 360, bitRate: 800_000)]
    let record = try #require(try interrupted(settings).epoch.wholeRecord)
    let after = Epoch(resuming: record, settings: settings.asServed)
    #expect(after.rungs.map(\.window.nextSequenceNumber) == [record.nextSequenceNumber])
    #expect(after.rungs.map(\.window.targetDuration) == [record.targetDuration])
  }
}
