import FMP4
import NIOCore
@testable import Playlists
@testable import Streams
import StreamSupport
import Support
import Testing
import Transcode

/// Rungs as playlists and manifests show them; their frames are synthetic.
@Suite struct TranscodedRenditionTests {
  private static let settings = StreamSettings {
    ($0.layout, $0.ladder) = (
      .separate,
      [RungSpecification(shortSide: 120, bitRate: 200_000), RungSpecification(shortSide: 90, bitRate: 100_000)]
    )
  }

  /// `seconds` of a source, and of its rungs the frames of those groups (of two seconds, from 0).
  private func driver(seconds: Int, groups: [Int]) throws -> EpochDriver {
    var driver = EpochDriver(Self.settings)
    try driver.publish(seconds: seconds, isSteady: true)
    for rung in 0..<2 {
      try driver.epoch.receive(.track(rung: rung, try SyntheticMedia.video()))
      for index in 0..<seconds * 30 where groups.contains(index / 60) {
        try driver.epoch.receive(.frame(rung: rung, SyntheticMedia.frame(index, size: 50 - 20 * rung)))
      }
    }
    return driver
  }

  private func lines(_ buffer: ByteBuffer, _ prefix: String) -> [String] {
    String(buffer: buffer).split(separator: "\n").map(String.init).filter { $0.hasPrefix(prefix) }
  }

  @Test func aRungHasTheSourcesSegmentsAndParts() throws {
    let epoch = try driver(seconds: 9, groups: [0, 1, 2, 3, 4]).epoch
    let rung = try #require(epoch.window(of: .rung("120p")))
    #expect(rung.segments.count == epoch.window.segments.count)
    for (own, source) in zip(rung.segments, epoch.window.segments) {
      #expect(own.sequenceNumber == source.sequenceNumber)
      #expect(own.start == source.start && own.wallStart == source.wallStart && own.duration == source.duration)
      #expect(
        own.parts(of: .video, isAudio: false).map(\.duration)
          == source.parts(of: .video, isAudio: false).map(\.duration))
      #expect(own.isComplete == source.isComplete)
    }
    #expect(epoch.window(of: .rung("720p")) == nil)
  }

  @Test func theMultivariantPlaylistHasAllVideoRenditionsAndOneGroupOfAudio() throws {
    let view = try driver(seconds: 9, groups: [0, 1, 2, 3, 4]).epoch.viewWithRungs
    let text = HLSMultivariantPlaylist(epoch: view, layout: .separate).render()
    #expect(lines(text, "#EXT-X-MEDIA:").count == 1)
    #expect(lines(text, "epoch1/") == ["epoch1/video/index.m3u8", "epoch1/120p/index.m3u8", "epoch1/90p/index.m3u8"])
    let rates = lines(text, "#EXT-X-STREAM-INF:BANDWIDTH=").compactMap { line in
      Int(line.dropFirst(28).prefix { $0.isNumber })
    }
    #expect(rates.count == 3 && rates[0] > rates[1] && rates[1] > rates[2], "measured: \(rates)")
  }

  @Test func whatIsMissingOfARungIsAGapAndNewViewersAreNotSentThere() throws {
    var driver = try driver(seconds: 9, groups: [0])
    try driver.epoch.receive(.lost(before: MediaTime(milliseconds: 6000)))
    let view = driver.epoch.viewWithRungs
    let rung = try #require(view.window(of: .rung("90p")))
    let text = HLSMediaPlaylist(window: rung, rendition: .rung("90p")).render()
    #expect(lines(text, "#EXT-X-GAP").count == 2)
    #expect(lines(text, "#EXTINF") == Array(repeating: "#EXTINF:2.000000,", count: 3))
    #expect(view.playableRungs.isEmpty)
    #expect(lines(HLSMultivariantPlaylist(epoch: view, layout: .separate).render(), "epoch1/").count == 1)
  }

  @Test func aRungComesBackWithTheNextKeyFrame() throws {
    let epoch = try driver(seconds: 9, groups: [0, 2, 3, 4]).epoch
    let rung = try #require(epoch.window(of: .rung("90p")))
    #expect(rung.segments.map { $0.fragments.isEmpty } == [false, true, false, false, false])
    #expect(epoch.viewWithRungs.playableRungs.count == 2)
  }

  /// Its worker makes nothing for a while.
  @Test func aRungKeepsNothingThatTheSourceHasDropped() throws {
    var driver = try driver(seconds: 21, groups: [])
    #expect(driver.epoch.window(of: .rung("90p"))?.segments.isEmpty == true)
    _ = driver.epoch.shrink(to: 0)
    let kept = try #require(driver.epoch.window.segments.first?.sequenceNumber)
    #expect(kept > 5 && driver.epoch.window(of: .rung("90p"))?.nextSequenceNumber == kept)
    // It goes on with the source's oldest segment.
    for index in (kept - 1) * 60..<21 * 30 {
      try driver.epoch.receive(.frame(rung: 1, SyntheticMedia.frame(index, size: 30)))
    }
    let rung = try #require(driver.epoch.window(of: .rung("90p")))
    #expect(rung.segment(kept)?.fragments.isEmpty == false)
  }

  @Test func manifestsHaveTheRungsInTheVideosAdaptationSet() throws {
    let view = try driver(seconds: 9, groups: [0, 1, 2, 3, 4]).epoch.viewWithRungs
    let text = String(buffer: DASHManifest(epoch: view, source: .server).root(publishTime: 0).document)
    let sets = text.split(separator: "<AdaptationSet ").dropFirst()
    #expect(sets.map { $0.ranges(of: "<Representation ").count } == [3, 1])
    #expect(text.contains("initialization=\"epoch1/90p/init-1.mp4\""))
  }

  @Test func atTheEndTheRungsAreAsLongAsTheSource() throws {
    var driver = try driver(seconds: 9, groups: [0, 1, 2, 3, 4])
    try driver.end()
    try driver.epoch.receive(.ended)
    let rung = try #require(driver.epoch.window(of: .rung("120p")))
    #expect(rung.isEnded && rung.segments.allSatisfy(\.isComplete))
    #expect(rung.segments.map(\.duration) == driver.epoch.window.segments.map(\.duration))
  }

  // MARK: Audio in another codec

  /// Nine seconds of a source, and of its audio in Opus the frames of those seconds.
  private func sounding(seconds: Range<Int>) throws -> Epoch {
    var driver = EpochDriver(StreamSettings { ($0.layout, $0.audio) = (.separate, AudioSpecification(.opus)) })
    try driver.publish(seconds: 9, isSteady: true)
    let codec = Codec(try Opus.Configuration(channels: 2, preSkip: 312))
    let track = TrackDescription(id: .audio, codec: codec, timescale: 48_000, frameDuration: 960)
    try driver.epoch.receive(.track(rung: 0, track), of: .audio)
    for index in seconds.lowerBound * 50..<seconds.upperBound * 50 {
      let frame = Sample(
        track: .audio, decodeTime: Int64(index) * 960, isSync: true, payload: ByteBuffer(bytes: [1, 2, 3]))
      try driver.epoch.receive(.frame(rung: 0, frame), of: .audio)
    }
    return driver.epoch
  }

  @Test func audioInAnotherCodecHasTheSourcesSegmentsWithinAFrame() throws {
    let epoch = try sounding(seconds: 0..<9)
    let audio = try #require(epoch.window(of: .transcodedAudio(.opus)))
    let complete = audio.segments.filter(\.isComplete)
    #expect(complete.count >= 4)
    for (own, source) in zip(complete, epoch.window.segments) {
      #expect(own.sequenceNumber == source.sequenceNumber)
      let off = own.start.seconds - source.start.seconds
      #expect(off >= 0 && off < 0.02)
      #expect(abs(own.duration.seconds - source.duration.seconds) < 0.021)
    }
    let limit = try #require(audio.partTarget).seconds
    for part in complete.flatMap({ $0.parts(of: .audio, isAudio: true) }) {
      #expect(part.duration.seconds <= limit + 0.000_001)
      #expect(part.isIndependent)
    }
  }

  @Test func eachAudioHasAGroupAndEveryVideoComesWithEach() throws {
    let view = try sounding(seconds: 0..<9).viewWithRungs
    let text = HLSMultivariantPlaylist(epoch: view, layout: .separate).render()
    #expect(lines(text, "#EXT-X-MEDIA:").count == 2)
    #expect(lines(text, "epoch1/") == ["epoch1/video/index.m3u8", "epoch1/video/index.m3u8"])
    let variants = lines(text, "#EXT-X-STREAM-INF:")
    #expect(variants[0].contains("mp4a.40.2") && variants[0].contains("AUDIO=\"audio\""))
    #expect(variants[1].contains(",opus\"") && variants[1].contains("AUDIO=\"opus\""))
    let manifest = String(buffer: DASHManifest(epoch: view, source: .server).root(publishTime: 0).document)
    #expect(manifest.split(separator: "<AdaptationSet ").dropFirst().count == 3)
    #expect(manifest.contains("initialization=\"epoch1/opus/init-1.mp4\""))
  }

  @Test func audioThatBeginsLateOpensItsSegmentThere() throws {
    let epoch = try sounding(seconds: 3..<9)
    let audio = try #require(epoch.window(of: .transcodedAudio(.opus)))
    #expect(audio.segments.prefix(3).map { $0.fragments.isEmpty } == [true, false, false])
    #expect(audio.segments[1].start == MediaTime(milliseconds: 3000))
  }
}
