import Base
import FMP4
import NIOCore
@testable import Playlists
import Storage
@testable import Streams
import StreamSupport
import Support
import Testing

@Suite struct PlaylistTests {
  private func lines(_ buffer: ByteBuffer) -> [String] {
    String(buffer: buffer).split(separator: "\n").map(String.init)
  }

  @Test func aLiveMediaPlaylistIsTheGoldenOne() throws {
    var driver = EpochDriver()
    try driver.publish(seconds: 9)
    try Golden.check(String(buffer: HLSMediaPlaylist(window: driver.epoch.window).render()), "media-live.m3u8")
  }

  @Test func anInterruptionIsOneDiscontinuityAndTheSequenceGoesOn() throws {
    var driver = EpochDriver()
    try driver.publish(seconds: 5)
    try driver.interrupt()
    try driver.publish(seconds: 5, wall: EpochDriver.wall + 20_000_000_000)
    try driver.end()
    let text = String(buffer: HLSMediaPlaylist(window: driver.epoch.window).render())
    try Golden.check(text, "media-interrupted.m3u8")
    #expect(text.split(separator: "\n").filter { $0 == "#EXT-X-DISCONTINUITY" }.count == 1)
    #expect(text.split(separator: "\n").filter { $0.hasPrefix("#EXT-X-MAP") }.count == 1, "the parameters are the same")
  }

  @Test(arguments: [0, 1, 29, 30, 60_060, 999_999_999, -1, -45_000_000, Int64(1) << 50] as [Int64])
  func secondsAreWrittenDigitByDigitAsTheyAreAsAString(_ ticks: Int64) {
    for timescale in [1, 1000, 30_000, 48_000, 90_000] as [UInt32] {
      let time = MediaTime(ticks: ticks, timescale: timescale)
      var buffer = ByteBuffer()
      buffer.writeSeconds(time)
      #expect(String(buffer: buffer) == Decimals.fixed(time, digits: 6))
    }
    var number = ByteBuffer()
    number.writeDecimal(ticks.magnitude)
    #expect(String(buffer: number) == String(ticks.magnitude))
  }

  @Test func theMultivariantPlaylistIsTheGoldenOne() throws {
    var driver = EpochDriver()
    try driver.publish(seconds: 9)
    try Golden.check(String(buffer: HLSMultivariantPlaylist(epoch: driver.epoch.view).render()), "multivariant.m3u8")
  }

  @Test func noListedSegmentIsEverLongerThanTheTargetDurationRounded() throws {
    for group in [15, 44, 45, 60, 75, 100, 250, 299, 1000] {
      var driver = EpochDriver()
      try driver.publish(seconds: 40, group: group)
      let text = lines(HLSMediaPlaylist(window: driver.epoch.window).render())
      let target = try #require(text.compactMap { number($0, after: "#EXT-X-TARGETDURATION:") }.first)
      let lengths = text.compactMap { number($0.replacing(",", with: ""), after: "#EXTINF:") }
      #expect(!lengths.isEmpty)
      #expect(lengths.allSatisfy { $0.rounded() <= target }, "group of \(group) frames")
    }
  }

  @Test func listedSegmentsCoverThreeTargetDurationsAndMemoryKeepsThemAsLongAgain() throws {
    var driver = EpochDriver(StreamSettings { $0.window = MediaTime(milliseconds: 10_000) })
    try driver.publish(seconds: 60)
    let window = driver.epoch.window
    let listed = window.listed
    #expect(listed.reduce(0) { $0 + $1.duration.seconds } >= 6)
    let first = try #require(listed.first)
    let unlisted = window.segments.filter { $0.sequenceNumber < first.sequenceNumber }
    let kept = unlisted.reduce(0) { $0 + $1.duration.seconds }
    let listLength = listed.reduce(0) { $0 + $1.duration.seconds }
    #expect(kept >= listLength)
  }

  @Test func memoryStaysWithinTheWindow() throws {
    var driver = EpochDriver()
    try driver.publish(seconds: 300)
    let complete = driver.epoch.window.segments.filter(\.isComplete)
    #expect(complete.reduce(0) { $0 + $1.duration.seconds } <= 60.01)
    #expect(driver.epoch.window.segments.last?.sequenceNumber ?? 0 >= 149)
  }

  @Test func theDiscontinuitySequenceCountsTagsThatLeftTheList() throws {
    var driver = EpochDriver(StreamSettings { $0.window = MediaTime(milliseconds: 16_000) })
    for _ in 0..<4 {
      try driver.publish(seconds: 6)
      try driver.interrupt()
    }
    let text = lines(HLSMediaPlaylist(window: driver.epoch.window).render())
    let shown = text.filter { $0 == "#EXT-X-DISCONTINUITY" }.count
    let left = text.compactMap { number($0, after: "#EXT-X-DISCONTINUITY-SEQUENCE:") }.first ?? 0
    #expect(shown + Int(left) == 3)
    let sequence = try #require(text.compactMap { number($0, after: "#EXT-X-MEDIA-SEQUENCE:") }.first)
    #expect(Int(sequence) == driver.epoch.window.listed.first?.sequenceNumber)
  }

  @Test func theTargetDurationIsDecidedByTheFirstGroupAndNeverChanges() throws {
    var driver = EpochDriver()
    try driver.publish(seconds: 12, group: 120)
    #expect(driver.epoch.window.targetDuration == 4)
    try driver.interrupt()
    try driver.publish(seconds: 30, group: 240)
    #expect(driver.epoch.window.targetDuration == 4)
    #expect(driver.epoch.window.keepsIndependence == false)
  }

  /// A group of pictures is longer than the longest segment: the second one begins without a key frame. Its parts are listed long
  /// before it is complete, and the list before it says nothing that it would have to take back.
  @Test(arguments: [false, true])
  func aListWhoseSegmentsWillBeginWithoutAKeyFrameNeverSaysOtherwise(comesBack: Bool) throws {
    var driver = EpochDriver()
    func tag() -> Bool? {
      guard driver.epoch.window.isReleased else { return nil }
      let low = HLSMediaPlaylist.LowLatency(addressing: .url, siblings: [], isDelta: false)
      let list = HLSMediaPlaylist(window: driver.epoch.window, rendition: .interleaved, lowLatency: low)
      return lines(list.render()).contains("#EXT-X-INDEPENDENT-SEGMENTS")
    }
    if comesBack {
      // Without a second key frame.
      try driver.publish(seconds: 4, group: 900)
      try driver.interrupt()
      #expect(tag() == false)
    }
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall + 4_000_000_000)))
    try driver.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    var said: [Bool] = []
    for sample in SyntheticMedia.interleaved(seconds: 14, group: 900) {
      try driver.receive(.sample(sample))
      if let tag = tag(), said.last != tag { said.append(tag) }
    }
    #expect(said == [false])
  }

  /// It waits for that key frame, with which the distance of key frames is known.
  @Test func aTrackThatJoinsWithTheSecondKeyFrameBreaksNoPromise() throws {
    var driver = EpochDriver()
    let (video, audio) = (try SyntheticMedia.video(), try SyntheticMedia.audio())
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    try driver.receive(.tracks([video]))
    for sample in SyntheticMedia.interleaved(seconds: 7) {
      if sample.track == .video, sample.decodeTime == 30_000 { try driver.receive(.tracks([video, audio])) }
      if sample.track == .video || sample.decodeTime >= 48_000 { try driver.receive(.sample(sample)) }
    }
    #expect(driver.epoch.window.segments.allSatisfy { $0.standsAlone })
    #expect(driver.epoch.window.targetDuration == 2)
    let list = lines(HLSMediaPlaylist(window: driver.epoch.window).render())
    #expect(list.contains("#EXT-X-INDEPENDENT-SEGMENTS"))
  }

  @Test func aKnownGroupReleasesThePlaylistWithTheFirstSegment() throws {
    var driver = EpochDriver(knownGroup: MediaTime(milliseconds: 4000))
    #expect(driver.epoch.window.targetDuration == 4)
    try driver.publish(seconds: 5, group: 120)
    #expect(driver.epoch.window.isReleased)
  }

  @Test func segmentsOfOneTrackAreViewsOnTheInterleavedBytes() throws {
    var driver = EpochDriver()
    try driver.publish(seconds: 5)
    let segment = try #require(driver.epoch.window.segment(1))
    for track in [TrackID.video, .audio] {
      let pieces = segment.pieces(of: track)
      let media = pieces.compactMap { piece -> FileRange? in if case .file(let range) = piece { range } else { nil } }
      #expect(media.allSatisfy { $0.file === segment.memory.file })
      #expect(media.reduce(0) { $0 + $1.length } == segment.span(of: track)?.mediaBytes)
    }
    let whole = segment.spans.reduce(0) { $0 + $1.mediaBytes }
    #expect(segment.memory.byteCount > whole)
  }

  private func number(_ line: String, after prefix: String) -> Double? {
    line.hasPrefix(prefix) ? Double(line.dropFirst(prefix.count)) : nil
  }
}

@Suite struct MediaNameTests {
  @Test(arguments: [
    "0.m4s", "01.m4s", "-1.m4s", "1.m4s.m4s", "t-1.m4s", "t.m4s", "t1.m4s", "t0-1.m4s", "t1-.m4s", "t1-01.m4s",
    "t1-2-3.m4s", "init-0.mp4", "init-.mp4", "0.mp4", "01.mp4", "t1-1.mp4", "1.2.mp4", ".mp4", "1e3.m4s", "x", "",
  ])
  func whatIsNoNameIsRefused(_ name: String) {
    #expect(MediaName.parse(name) == nil)
  }

  @Test func namesAreReadAsTheyAreWritten() {
    #expect(MediaName.parse(MediaName.segment(42)) == .segment(42))
    #expect(MediaName.parse(MediaName.segment(at: 0, initVersion: 1)) == .segmentAt(0, initVersion: 1))
    #expect(MediaName.parse(MediaName.segment(at: 96_256, initVersion: 12)) == .segmentAt(96_256, initVersion: 12))
    #expect(MediaName.parse(MediaName.initSegment(7)) == .initSegment(7))
    #expect(MediaName.parse(MediaName.playable(12)) == .playable(12))
    #expect(MediaName.parse("index.m3u8") == .playlist)
  }

  @Test func decimalsAreExact() {
    #expect(Decimals.fixed(MediaTime(ticks: 60_060, timescale: 30_000), digits: 6) == "2.002000")
    #expect(Decimals.fixed(MediaTime(ticks: -1, timescale: 1000), digits: 3) == "-0.001")
    #expect(Decimals.trimmed(thousandths: 29_970) == "29.97")
    #expect(Decimals.trimmed(thousandths: 30_000) == "30")
  }
}
