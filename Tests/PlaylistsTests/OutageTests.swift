import Base
import FMP4
import NIOCore
@testable import Playlists
@testable import Streams
import StreamSupport
import Support
import Testing
import Transcode

/// What playlists and manifests list of an outage.
@Suite struct OutageTests {
  private struct Line {
    var duration: Double
    var date: Int64?
    var isGap: Bool
  }

  /// The segments of a playlist, dates in milliseconds.
  private func lines(_ window: LiveWindow, _ rendition: Rendition) throws -> [Line] {
    var lines: [Line] = []
    var next = Line(duration: 0, date: nil, isGap: false)
    let text = HLSMediaPlaylist(window: window, rendition: rendition).render()
    for line in String(buffer: text).split(separator: "\n") {
      if let date = line.wholeMatch(of: #/#EXT-X-PROGRAM-DATE-TIME:(.*)/#) {
        next.date = UTCText.read(String(date.1)).map(\.milliseconds)
      } else if line == "#EXT-X-GAP" {
        next.isGap = true
      } else if let length = line.wholeMatch(of: #/#EXTINF:([\d.]+),/#) {
        next.duration = try #require(Double(length.1))
      } else if !line.hasPrefix("#") {
        lines.append(next)
        next = Line(duration: 0, date: nil, isGap: false)
      }
    }
    return lines
  }

  /// Five seconds of media, an outage of `outage` seconds, which may be listed while it lasts, and four seconds of media.
  private func driver(
    outage: Double, isBegun: Bool = false, _ settings: StreamSettings = StreamSettings { $0.layout = .separate }
  ) throws -> EpochDriver {
    var driver = EpochDriver(settings)
    try driver.publish(seconds: 5, isSteady: true)
    try driver.interrupt()
    if isBegun { _ = driver.epoch.beginOutage() }
    try driver.publish(
      seconds: 5, wall: EpochDriver.wall + 5_000_000_000 + Int64(outage * 1e9), isSteady: true)
    return driver
  }

  /// Audio goes on for longer than the video: with its last frames a part comes that shows nothing new.
  @Test func noPartIsWithoutLength() throws {
    var driver = EpochDriver()
    try driver.publish(seconds: 5, isSteady: true)
    let last = try #require(
      SyntheticMedia.interleaved(seconds: 6, group: 60, isSteady: true).last { $0.track == .audio })
    var audio = last
    audio.decodeTime = 5 * 48_000
    try driver.receive(.sample(audio))
    try driver.interrupt()
    let segment = try #require(driver.epoch.window.segments.last { !$0.isOutage && !$0.fragments.isEmpty })
    let parts = segment.parts(of: nil, isAudio: false)
    #expect(parts.allSatisfy { $0.duration >= MediaTime(milliseconds: 3) }, "\(parts.map(\.duration.seconds))")
    let sum = parts.reduce(0) { $0 + $1.duration.seconds }
    #expect(abs(sum - segment.duration.seconds) < 0.000_01)
  }

  /// hls.js plays beyond the end of the list, where it is the video's. The list stands still then, and it goes back again and again.
  /// The video's last part is up to a part long; what is too much for it is a part of the audio.
  @Test(arguments: Array(150...156), [1, 3, 9])
  func aListEndsWithTheLongestTrackOfALostPublisher(frames: Int, more: Int) throws {
    for layout in [StreamSettings.HLSLayout.interleaved, .separate] {
      var driver = EpochDriver(StreamSettings { $0.layout = layout })
      driver.epoch.startPublication()
      try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
      try driver.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
      let samples = SyntheticMedia.interleaved(seconds: 6, isSteady: true)
      let sounds = frames * 1600 / 1024 + more
      for sample in samples where sample.decodeTime < (sample.track == .video ? frames * 1000 : sounds * 1024) {
        try driver.receive(.sample(sample))
      }
      try driver.interrupt()
      let window = driver.epoch.window
      let segment = try #require(window.segments.last)
      let (video, audio) = (try #require(segment.span(of: .video)), try #require(segment.span(of: .audio)))
      #expect(audio.start + audio.duration == Int64(sounds) * 1024, "nothing is lost")
      #expect(video.start + video.duration == Int64(frames) * 1000, "the media keep their length")
      let end = MediaTime(ticks: Int64(max(sounds * 1024, frames * 1600)), timescale: 48_000)
      let limit = try #require(window.partTarget).seconds + 0.000_01
      let track: TrackID? = layout == .separate ? .video : nil
      let parts = segment.parts(of: track, isAudio: false).map(\.duration.seconds)
      #expect(parts.allSatisfy { $0 <= limit }, "\(parts)")
      let length = parts.reduce(0, +)
      let line = try #require(try lines(window, track == nil ? .interleaved : .video).last)
      #expect(abs(line.duration - length) < 0.000_1)
      let missing = (end - segment.start).seconds - length
      // A part of the audio alone is in no list of the video.
      #expect(missing < (track == nil ? 0.000_1 : 0.22) && missing > -0.003_1, "\(parts)")
    }
  }

  /// The camera stands still, and the audio goes on for up to as long as it is waited for. Frames into a segment of 60.
  @Test(arguments: [StreamSettings.HLSLayout.interleaved, .separate], [1, 30, 57])
  func noSegmentIsLongerThanTheTargetWhereAudioGoesOn(layout: StreamSettings.HLSLayout, frames: Int) throws {
    var driver = EpochDriver(StreamSettings { $0.layout = layout })
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    try driver.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 9, isSteady: true)
    where sample.decodeTime < (sample.track == .video ? (120 + frames) * 1000 : (120 + frames) * 1600 + 140_000) {
      try driver.receive(.sample(sample))
    }
    try driver.interrupt()
    let window = driver.epoch.window
    let target = Double(try #require(window.targetDuration))
    for rendition in layout == .interleaved ? [Rendition.interleaved] : [.video, .audio] {
      let lengths = try lines(window, rendition).map(\.duration)
      #expect(lengths.allSatisfy { $0.rounded() <= target }, "\(rendition): \(lengths)")
    }
    let audio = window.segments.compactMap { $0.span(of: .audio) }
    let sounds = ((120 + frames) * 1600 + 140_000 + 1023) / 1024
    #expect(audio.reduce(0) { $0 + $1.duration } == Int64(sounds) * 1024, "nothing is lost")
    #expect(zip(audio, audio.dropFirst()).allSatisfy { $0.start + $0.duration == $1.start })
    #expect(window.segments.allSatisfy { $0.standsAlone }, "audio alone needs no key frame")
  }

  /// Manifests list the second that has come of two that were announced: what a player asks for next is waited for.
  @Test func whatFollowsASegmentThatWasCutShortHasAnAddress() throws {
    var driver = EpochDriver(StreamSettings { $0.layout = .separate })
    try driver.publish(seconds: 5, isSteady: true)
    #expect(driver.epoch.window.segments.last?.span(of: .video)?.announced?.duration == 60_000)
    try driver.interrupt()
    let window = driver.epoch.window
    let next = window.nextSequenceNumber
    let span = try #require(window.segments.last?.span(of: .audio))
    #expect(window.sequenceNumber(ofTime: 150_000, .video, initVersion: 1) == next)
    #expect(window.sequenceNumber(ofTime: 180_000, .video, initVersion: 1) == next, "as it was announced")
    #expect(window.sequenceNumber(ofTime: span.start + span.duration, .audio, initVersion: 1) == next)
    #expect(window.sequenceNumber(ofTime: 151_000, .video, initVersion: 1) == nil)
    let isBegun = driver.epoch.beginOutage()
    #expect(isBegun)
    #expect(driver.epoch.window.sequenceNumber(ofTime: 150_000, .video, initVersion: 1) == next + 1, "behind the gap")
  }

  /// hls.js goes back where it has played beyond the end of a list that stands still.
  @Test func anOutageThatLastsIsListedOnceByAShortGap() throws {
    var driver = EpochDriver(StreamSettings { $0.layout = .separate })
    let isBegunBefore = driver.epoch.beginOutage()
    try driver.publish(seconds: 5, isSteady: true)
    let isBegunLive = driver.epoch.beginOutage()
    try driver.interrupt()
    let before = try lines(driver.epoch.window, .video)
    let isBegun = driver.epoch.beginOutage()
    let isBegunAgain = driver.epoch.beginOutage()
    #expect([isBegunBefore, isBegunLive, isBegun, isBegunAgain] == [false, false, true, false])
    for rendition in [Rendition.interleaved, .video, .audio] {
      let lines = try lines(driver.epoch.window, rendition)
      #expect(lines.count == before.count + 1)
      #expect(lines.last?.isGap == true && (0.2...0.4).contains(lines.last?.duration ?? 0))
    }
    // hls.js lets a list end with its last part.
    var playlist = HLSMediaPlaylist(window: driver.epoch.window, rendition: .video)
    playlist.lowLatency = HLSMediaPlaylist.LowLatency()
    let text = String(buffer: playlist.render())
    let number = driver.epoch.window.nextSequenceNumber - 1
    #expect(text.contains("URI=\"\(number).0.m4s\",GAP=YES\n#EXT-X-GAP\n#EXTINF:"))
    #expect(text.hasSuffix("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"\(number + 1).0.m4s\"\n"))
    #expect(driver.epoch.window.isInterrupted)
  }

  /// What lasts for less than a second is listed at its end alone.
  @Test(arguments: [0.3, 1.9, 2.4, 2.5, 4, 11.3].map { ($0, false) } + [1, 1.9, 4, 11.3].map { ($0, true) })
  func datesFollowFromLengthsOverAnOutage(outage: Double, isBegun: Bool) throws {
    let epoch = try driver(outage: outage, isBegun: isBegun).epoch
    for rendition in [Rendition.interleaved, .video] {
      let lines = try lines(epoch.window, rendition)
      let gaps = lines.filter(\.isGap)
      #expect(abs(gaps.reduce(0) { $0 + $1.duration } - outage) < 0.05)
      #expect(gaps.allSatisfy { $0.duration < 2.5 }, "EXTINF rounded is at most the target")
      for (line, next) in zip(lines, lines.dropFirst()) {
        let (date, after) = (try #require(line.date), try #require(next.date))
        #expect(abs(Double(after - date) / 1000 - line.duration) < 0.005)
      }
    }
    let numbers = epoch.window.segments.map(\.sequenceNumber)
    #expect(numbers == Array(1...numbers.count))
  }

  /// Publications of a second, each two seconds after the one before, and none with a second key frame.
  @Test func aPublisherThatComesAndGoesIsListedTenSecondsAfterItsBeginning() throws {
    var driver = EpochDriver(StreamSettings { $0.layout = .separate })
    for number in 0...5 {
      #expect(driver.epoch.window.targetDuration == nil, "\(number)")
      try driver.publish(seconds: 1, wall: EpochDriver.wall + Int64(number) * 2_000_000_000, isSteady: true)
      try driver.interrupt()
    }
    #expect(driver.epoch.window.targetDuration == 2)
    #expect(driver.epoch.window.isReleased)
  }

  @Test func anOutageWithinTheFirstGroupOfPicturesIsListedToo() throws {
    var driver = EpochDriver(StreamSettings { $0.layout = .separate })
    try driver.publish(seconds: 1, isSteady: true)
    #expect(driver.epoch.window.targetDuration == nil)
    try driver.interrupt()
    try driver.publish(seconds: 5, wall: EpochDriver.wall + 5_000_000_000, isSteady: true)
    let lines = try lines(driver.epoch.window, .video)
    #expect(abs(lines.filter(\.isGap).reduce(0) { $0 + $1.duration } - 4) < 0.05)
    for (line, next) in zip(lines, lines.dropFirst()) {
      let (date, after) = (try #require(line.date), try #require(next.date))
      #expect(abs(Double(after - date) / 1000 - line.duration) < 0.005)
    }
  }

  @Test func aTakeoverWithoutAnOutageHasNoGap() throws {
    #expect(try driver(outage: 0.05).epoch.window.segments.allSatisfy { !$0.isOutage })
  }

  @Test func anOutageLongerThanAllThatIsKeptTakesFewNumbers() throws {
    let settings = StreamSettings { $0.window = MediaTime(milliseconds: 20_000) }
    let epoch = try driver(outage: 90_000, settings).epoch
    #expect(epoch.window.nextSequenceNumber < 30)
    #expect(try lines(epoch.window, .interleaved).allSatisfy { !$0.isGap }, "no list begins with a gap")
  }

  @Test func thePeriodBeforeALongOutageStaysListedForAWhile() throws {
    let settings = StreamSettings { $0.window = MediaTime(milliseconds: 20_000) }
    let epoch = try driver(outage: 60, settings).epoch
    let view = epoch.viewWithRungs
    let early = DASHManifest(epoch: view, source: .server).root(publishTime: EpochDriver.wall + 70_000_000_000)
    #expect(early.children.count { $0.name == "Period" } == 2)
    let late = DASHManifest(epoch: view, source: .server).root(publishTime: EpochDriver.wall + 90_000_000_000)
    #expect(late.children.count { $0.name == "Period" } == 1)
    #expect(early["timeShiftBufferDepth"] != late["timeShiftBufferDepth"])
  }

  @Test func rungsHaveTheSameGapsAndStayPlayable() throws {
    let settings = StreamSettings {
      ($0.layout, $0.ladder) = (.separate, [RungSpecification(shortSide: 90, bitRate: 100_000)])
    }
    var driver = EpochDriver(settings)
    func publish(wall: WallTime) throws {
      let start = driver.epoch.mediaEnd
      try driver.publish(seconds: 5, wall: wall, isSteady: true)
      try driver.epoch.receive(.track(rung: 0, try SyntheticMedia.video()))
      for index in 0..<150 {
        var frame = SyntheticMedia.frame(index, size: 30)
        // Publications lie behind each other, from a whole millisecond on.
        frame.decodeTime &+= MediaTime(milliseconds: start.map { ($0.nanoseconds + 999_999) / 1_000_000 } ?? 0)
          .rescaled(to: 30_000)
        try driver.epoch.receive(.frame(rung: 0, frame))
      }
    }
    try publish(wall: EpochDriver.wall)
    try driver.interrupt()
    try driver.epoch.receive(.lost(before: MediaTime(milliseconds: 5000)))
    try publish(wall: EpochDriver.wall + 9_000_000_000)
    let (source, rung) = (driver.epoch.window, try #require(driver.epoch.window(of: .rung("90p"))))
    #expect(source.segments.filter(\.isOutage).map(\.sequenceNumber) == [4, 5])
    #expect(rung.segments.filter(\.isOutage).map(\.sequenceNumber) == [4, 5])
    #expect(driver.epoch.viewWithRungs.playableRungs.count == 1)
  }

  @Test func withoutAPublisherAManifestHasNoPatchesAndAfterwardsTrueLengths() throws {
    var driver = EpochDriver(StreamSettings())
    try driver.publish(seconds: 5, isSteady: true)
    func manifest() -> XMLElement { DASHManifest(epoch: driver.epoch.view, source: .server).root(publishTime: 0) }
    #expect(manifest().all("PatchLocation").count == 1)
    try driver.interrupt()
    #expect(manifest().all("PatchLocation").isEmpty)
    try driver.publish(seconds: 3, wall: EpochDriver.wall + 9_000_000_000, isSteady: true)
    let periods = manifest().all("Period")
    #expect(manifest().all("PatchLocation").count == 1)
    #expect(periods.map { $0["start"] } == ["PT0S", "PT9S"])
    #expect(periods.allSatisfy { $0["duration"] == nil }, "libavformat would play the one with a duration")
    let video = periods[0].all("Representation").first { $0["id"] == "video" }
    #expect(video?.all("S").map { $0["d"] } == ["60000", "60000", "30000"], "of 30,000 ticks a second")
  }
}
