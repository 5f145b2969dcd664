import FMP4
import NIOCore
@testable import Playlists
import ServerSupport
@testable import Streams
import StreamSupport
import Support
import Testing

/// A track that comes late, goes, or changes: nothing is different in playlists, manifests and bytes of the other tracks.
@Suite struct ChangedTracksTests {
  private static let further = TrackID(.audio, 2)
  private static let ids = [TrackID.video, .audio, further]

  private func track(_ id: TrackID, _ language: String = "und") throws -> TrackDescription {
    var track = id == .video ? try SyntheticMedia.video() : try SyntheticMedia.audio(id)
    track.language = language
    return track
  }

  /// Twelve seconds of video and two tracks of audio, with these tracks before and after five seconds.
  private func stream(_ before: [TrackDescription], _ after: [TrackDescription]) throws -> EpochDriver {
    var settings = StreamSettings()
    settings.layout = .separate
    var driver = EpochDriver(settings)
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    try driver.receive(.tracks(before))
    var isChanged = false
    for sample in SyntheticMedia.interleaved(seconds: 12, isSteady: true, furtherAudios: [Self.further]) {
      if !isChanged, sample.track == .video, sample.decodeTime >= 150_000 {
        isChanged = true
        try driver.receive(.tracks(after))
      }
      if (isChanged ? after : before).contains(where: { $0.id == sample.track }) { try driver.receive(.sample(sample)) }
    }
    return driver
  }

  private func text(_ epoch: Epoch, _ rendition: Rendition) -> String {
    String(
      buffer: HLSMediaPlaylist(
        window: epoch.window, rendition: rendition, lowLatency: HLSMediaPlaylist.LowLatency()
      ).render())
  }

  private func expectSame(_ epoch: Epoch, _ other: Epoch, _ tracks: [TrackID?], first count: Int = 6) throws {
    #expect(epoch.window.segments.count == 6 && other.window.segments.count == 6)
    for (one, two) in zip(epoch.window.segments.prefix(count), other.window.segments) {
      for track in tracks { #expect(try one.pieces(of: track).read() == two.pieces(of: track).read()) }
    }
  }

  @Test func aLateTrackChangesNothingForOthers() throws {
    let first = [try track(.video), try track(.audio)]
    let (late, plain) = (try stream(first, first + [track(Self.further)]), try stream(first, first))
    for rendition in Rendition.allCases { #expect(text(late.epoch, rendition) == text(plain.epoch, rendition)) }
    try expectSame(late.epoch, plain.epoch, [nil, .video, .audio])
    #expect(try late.epoch.piecesSinceLastKeyFrame().read() == plain.epoch.piecesSinceLastKeyFrame().read())
    let own = text(late.epoch, .further(.audio, 2)).split(separator: "\n")
    #expect(own.filter { $0.hasPrefix("#EXT-X-MAP") } == ["#EXT-X-MAP:URI=\"init-2.mp4\""])
    #expect(own.count { $0 == "#EXT-X-GAP" } == 3 && !own.contains { $0.hasPrefix("#EXT-X-DISCONTINUITY") })
    #expect(own.contains("#EXT-X-PART:DURATION=0.213333,URI=\"4.0-2.m4s\",INDEPENDENT=YES"))
    #expect(own.contains { $0.hasPrefix("t2-287744.") })
  }

  @Test func aTrackThatGoesChangesNothingForOthers() throws {
    let first = [try track(.video), try track(.audio)]
    let (short, plain) = (
      try stream(first + [track(Self.further)], first),
      try stream(first + [track(Self.further)], first + [track(Self.further)])
    )
    for rendition in Rendition.allCases { #expect(text(short.epoch, rendition) == text(plain.epoch, rendition)) }
    try expectSame(short.epoch, plain.epoch, [nil, .video, .audio])
    let own = text(short.epoch, .further(.audio, 2))
    #expect(!own.contains("PRELOAD-HINT") && own.contains("#EXT-X-GAP"))
  }

  @Test func aFirstAudioThatChangesBreaksTheInterleavedLayoutAlone() throws {
    let further = try track(Self.further)
    let first = [try track(.video), try track(.audio), further]
    let changed = [try track(.video), try track(.audio, "fra"), further]
    let (epoch, plain) = (try stream(first, changed).epoch, try stream(first, first).epoch)
    for rendition in [Rendition.video, .further(.audio, 2)] {
      #expect(text(epoch, rendition) == text(plain, rendition))
    }
    // The fragments of what was early count, too: later ones differ in their numbers alone.
    try expectSame(epoch, plain, [.video, Self.further], first: 3)
    for (one, two) in zip(epoch.window.segments, plain.window.segments) {
      #expect(one.byteCount(of: .video) == two.byteCount(of: .video) && one.duration == two.duration)
    }
    let (own, shown) = (text(epoch, .audio), text(epoch, .interleaved))
    #expect(own.contains("URI=\"init-1.mp4\"") && own.contains("URI=\"init-2.mp4\""))
    #expect(!own.contains("#EXT-X-DISCONTINUITY"))
    #expect(
      shown.split(separator: "\n").count { $0 == "#EXT-X-DISCONTINUITY" } == 1 && shown.contains("URI=\"init-2.mp4\""))
    #expect(epoch.record?.breaks == 1 && plain.record?.breaks == 0)
    #expect(epoch.window.discontinuitySequence(of: .video) == 0)
  }

  @Test func theManifestHasANewPeriodThatContinuesTheOthers() throws {
    let first = [try track(.video), try track(.audio)]
    let epoch = try stream(first, first + [track(Self.further)]).epoch
    let root = DASHManifest(epoch: epoch.view, source: .folder).root(publishTime: 0)
    let periods = root.children.filter { $0.name == "Period" }
    #expect(periods.map { $0.children.map { $0["id"] } } == [["1", "2"], ["1", "2", "4"]])
    let continued = periods.last?.children.map { set in
      set.children.filter { $0["schemeIdUri"] == "urn:mpeg:dash:period-continuity:2015" }.map { $0["value"] }
    }
    #expect(continued == [["0"], ["0"], []])
    let inits = periods.last?.children.map { set in
      set.children.first { $0.name == "Representation" }?.children.first { $0.name == "SegmentTemplate" }?[
        "initialization"]
    }
    #expect(inits == ["epoch1/video/init-1.mp4", "epoch1/audio/init-1.mp4", "epoch1/audio-2/init-2.mp4"])
    // The late track begins within half a frame of the Period.
    let template = periods.last?.children.last?.children.last?.children.last
    #expect(template?["presentationTimeOffset"] == "288000")
    #expect(template?.children.first?.children.first?["t"] == "287744")
  }

  /// Audio of another format begins with the next key frame: in manifests not before its Period, and in no segment too much.
  @Test func audioThatChangesBetweenKeyFramesStaysWithinItsPeriodAndItsSegments() throws {
    let epoch = try stream([try track(.video), try track(.audio)], [try track(.video), try SyntheticMedia.mono()]).epoch
    let root = DASHManifest(epoch: epoch.view, source: .folder).root(publishTime: 0)
    let periods = root.children.filter { $0.name == "Period" }
    #expect(periods.map { $0.children.map { $0["id"] } } == [["1", "2"], ["1", "2"]])
    let template = periods.last?.children.last?.children.last?.children.last
    #expect(template?["presentationTimeOffset"] == "288000")
    #expect(template?.children.first?.children.first?["t"] == "287744")
    #expect(epoch.window.segments.count == 6)
    for segment in epoch.window.segments {
      let length = segment.span(of: .audio)?.duration ?? 0
      #expect((1..<Int64(105_000)).contains(length), "segment \(segment.sequenceNumber): \(length) of 96000")
    }
    let shown = text(epoch, .interleaved).split(separator: "\n")
    #expect(shown.count { $0 == "#EXT-X-DISCONTINUITY" } == 1 && shown.contains("#EXT-X-MAP:URI=\"init-2.mp4\""))
    #expect(shown.contains("#EXT-X-INDEPENDENT-SEGMENTS"))
    #expect(!text(epoch, .audio).contains("#EXT-X-GAP"))
  }

  @Test func segmentsAreFoundByTheVersionOfTheirTrackAndByThatOfTheirSegment() throws {
    let first = [try track(.video), try track(.audio)]
    let window = try stream(first, first + [track(Self.further)]).epoch.window
    for version in [1, 2] { #expect(window.sequenceNumber(ofTime: 240_000, .video, initVersion: version) == 5) }
    #expect(window.sequenceNumber(ofTime: 60_000, .video, initVersion: 2) == nil)
    #expect(window.sequenceNumber(ofTime: 240_000, .video, initVersion: 3) == nil)
  }

  @Test func anInitSegmentIsKeptAsLongAsATrackNeedsIt() throws {
    let first = [try track(.video), try track(.audio)]
    var settings = StreamSettings()
    settings.window = MediaTime(milliseconds: 4000)
    settings.layout = .separate
    var driver = EpochDriver(settings)
    try driver.publish(seconds: 4, isSteady: true)
    try driver.receive(.tracks(first + [track(Self.further)]))
    let samples = SyntheticMedia.interleaved(seconds: 60, isSteady: true, furtherAudios: [Self.further])
    for sample in samples where sample.decodeTime >= (sample.track == .video ? 120_000 : 191_488) {
      try driver.receive(.sample(sample))
    }
    let window = driver.epoch.window
    #expect(window.segments.first?.initVersion == 2 && window.inits.keys.sorted() == [1, 2])
    #expect(text(driver.epoch, .video).contains("URI=\"init-1.mp4\""))
  }
}
