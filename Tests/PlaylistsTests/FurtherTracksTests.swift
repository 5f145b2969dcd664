import FMP4
import NIOCore
@testable import Playlists
import ServerSupport
@testable import Streams
import StreamSupport
import Support
import Testing

/// A stream with several tracks of a kind is served in the separate layout. Its first tracks are the same as without the
/// others.
@Suite struct FurtherTracksTests {
  private static let further = [TrackID(.audio, 2), TrackID(.audio, 3)]
  /// 640×360, as `SyntheticMedia.h264Record` is 320×180.
  private static let largeRecord =
    "0164001effe1001a6764001eacd940a02ff970110000030001000003003c0f162d9601000668ebe3cb22c0fdf8f800"

  /// Nine seconds of video with one track of audio, and with further ones.
  private func stream(_ further: [TrackID], _ layout: StreamSettings.HLSLayout = .interleaved) throws -> EpochDriver {
    var settings = StreamSettings()
    settings.layout = layout
    var driver = EpochDriver(settings)
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    try driver.receive(.tracks(try tracks(further)))
    for sample in SyntheticMedia.interleaved(seconds: 9, offset: 1000, isSteady: true, furtherAudios: further) {
      try driver.receive(.sample(sample))
    }
    return driver
  }

  private func tracks(_ further: [TrackID]) throws -> [TrackDescription] {
    [try SyntheticMedia.video(), try SyntheticMedia.audio()]
      + (try further.map { id in
        var track = try SyntheticMedia.audio(id)
        track.language = id == Self.further[0] ? "deu" : "und"
        return track
      })
  }

  private func multivariant(_ epoch: Epoch, video: Int? = nil) -> [String] {
    String(buffer: HLSMultivariantPlaylist(epoch: epoch.view, layout: epoch.view.layout, video: video).render())
      .split(separator: "\n").map(String.init)
  }

  @Test(arguments: [StreamSettings.HLSLayout.interleaved, .separate])
  func theFirstTracksAreTheSameWithFurtherOnes(_ layout: StreamSettings.HLSLayout) throws {
    let plain = try stream([], .separate).epoch
    let rich = try stream(Self.further, layout).epoch
    #expect(rich.view.layout == .separate)
    #expect(rich.window.segments.count >= 4 && rich.window.segments.count == plain.window.segments.count)
    #expect(rich.initSegment?.interleaved == plain.initSegment?.interleaved)
    for (rich, plain) in zip(rich.window.segments, plain.window.segments) {
      for track in [nil, TrackID.video, .audio] {
        #expect(try rich.pieces(of: track).read() == plain.pieces(of: track).read())
        #expect(rich.byteCount(of: track) == plain.byteCount(of: track))
        #expect(rich.partCount(of: track) == plain.partCount(of: track))
        #expect(
          rich.parts(of: track, isAudio: false).map(\.bytes) == plain.parts(of: track, isAudio: false).map(\.bytes))
        for part in 0..<plain.partCount(of: track) {
          let (rich, plain) = (rich.pieces(ofPart: part, of: track), plain.pieces(ofPart: part, of: track))
          #expect(try rich?.read() == plain?.read())
        }
        #expect(rich.pieces(ofPart: plain.partCount(of: track), of: track) == nil)
        #expect(
          try rich.pieces(of: track, fromFragment: 2).read() == plain.pieces(of: track, fromFragment: 2).read())
      }
    }
    #expect(try rich.piecesSinceLastKeyFrame().read() == plain.piecesSinceLastKeyFrame().read())
    for rendition in Rendition.allCases {
      #expect(
        HLSMediaPlaylist(window: rich.window, rendition: rendition).render()
          == HLSMediaPlaylist(window: plain.window, rendition: rendition).render())
    }
  }

  @Test func aViewerOfOneFileGetsTheSameFragments() throws {
    func shown(_ driver: EpochDriver) throws -> [ByteBuffer] {
      try driver.events.compactMap { event in
        if case .fragment(let fragment) = event { try fragment.shown.read() } else { nil }
      }
    }
    let (rich, plain) = (try shown(stream(Self.further)), try shown(stream([], .separate)))
    #expect(plain.count > 30 && rich == plain)
  }

  @Test func theWindowHoldsAllOfThem() throws {
    let epoch = try stream(Self.further).epoch
    #expect(epoch.view.trackRenditions.map(\.rawValue) == ["video", "audio", "audio-2", "audio-3"])
    for segment in epoch.window.segments where segment.isComplete {
      for track in [TrackID.video, .audio] + Self.further { #expect(segment.span(of: track)?.mediaBytes ?? 0 > 0) }
    }
  }

  @Test func aViewerOfOneFileMayTakeAnotherAudio() throws {
    let driver = try stream(Self.further)
    let tracks = try #require(driver.epoch.initSegment).tracks
    let german = try #require(tracks.audio("de"))
    #expect(tracks.audio("2") == german && tracks.audio("audio-2") == german && tracks.audio("deu") == german)
    #expect(tracks.audio("audio")?.id == .audio && tracks.audio("9") == nil && tracks.audio("fr") == nil)
    let chosen = tracks.defaults(withAudio: german.id).map(\.id)
    #expect(chosen == [.video, german.id])
    var last: [ByteBuffer] = []
    for case .fragment(let fragment) in driver.events {
      last = try fragment.pieces(of: chosen).map { try [$0].read() }
      // Head and media of the video, then of the audio.
      #expect(last.count == 2 * fragment.fragment.runs.count { chosen.contains($0.track) })
      #expect(try fragment.pieces(of: nil).read() == fragment.shown.read())
    }
    #expect(last.last?.readableBytesView.first == 0xFF, "the further audio's own bytes")
    let pieces = try driver.epoch.piecesSinceLastKeyFrame(of: chosen).map { try [$0].read() }
    #expect(pieces.first == InitSegment(version: 1, tracks: []).showing(tracks.filter { chosen.contains($0.id) }))
    #expect(pieces.last == last.last)
  }

  @Test func theMultivariantPlaylistHasAGroupOfAllLanguages() throws {
    let epoch = try stream(Self.further).epoch
    let lines = multivariant(epoch)
    let start = "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"audio\",NAME="
    #expect(
      lines.filter { $0.hasPrefix("#EXT-X-MEDIA") } == [
        start + "\"Audio\",LANGUAGE=\"und\",DEFAULT=YES,AUTOSELECT=YES,CHANNELS=\"2\",URI=\"epoch1/audio/index.m3u8\"",
        start + "\"deu\",LANGUAGE=\"de\",DEFAULT=NO,AUTOSELECT=YES,CHANNELS=\"2\",URI=\"epoch1/audio-2/index.m3u8\"",
        start
          + "\"Audio 3\",LANGUAGE=\"und\",DEFAULT=NO,AUTOSELECT=YES,CHANNELS=\"2\",URI=\"epoch1/audio-3/index.m3u8\"",
      ])
    #expect(lines.filter { !$0.hasPrefix("#") } == ["epoch1/video/index.m3u8"])
    #expect(lines.contains { $0.hasPrefix("#EXT-X-STREAM-INF") && $0.hasSuffix(",AUDIO=\"audio\"") })
  }

  @Test func theManifestHasASetOfEach() throws {
    let epoch = try stream(Self.further).epoch
    let root = DASHManifest(epoch: epoch.view, source: .folder).root(publishTime: 0)
    let sets = root.children.flatMap(\.children).filter { $0.name == "AdaptationSet" }
    #expect(sets.map { $0["id"] } == ["1", "2", "4", "6"])
    #expect(sets.map { $0["lang"] } == [nil, "und", "de", "und"])
    let roles = sets.map { set in set.children.first { $0.name == "Role" }?["value"] }
    #expect(roles == ["main", "main", "alternate", "alternate"])
  }

  @Test func tracksThatComeLaterAppearAndPlayersOfTheInterleavedLayoutKeepIt() throws {
    var driver = EpochDriver()
    try driver.publish(seconds: 5, isSteady: true)
    #expect(driver.epoch.view.layout == .interleaved)
    let before = try #require(driver.epoch.window.partTarget)
    try driver.receive(.tracks(try tracks(Self.further)))
    let late = SyntheticMedia.interleaved(seconds: 12, isSteady: true, furtherAudios: Self.further).filter { sample in
      sample.decodeTime >= (sample.track == .video ? 150_000 : 239_616)
    }
    for sample in late { try driver.receive(.sample(sample)) }
    let epoch = driver.epoch
    #expect(epoch.view.layout == .separate)
    #expect(multivariant(epoch).count { $0.hasPrefix("#EXT-X-MEDIA") } == 3)
    let window = epoch.window
    #expect(window.partTarget(of: .interleaved) == before)
    let limit = try #require(window.partTarget(of: .audio))
    #expect(limit > before && limit < before + MediaTime(milliseconds: 23))
    let audio = window.segments.flatMap { $0.parts(of: Self.further[0], isAudio: true) }
    #expect(audio.count > 20 && audio.allSatisfy { $0.duration <= limit })
    let lengths = window.segments.flatMap { $0.parts(of: nil, isAudio: false) }.map(\.duration)
    #expect(lengths.allSatisfy { $0 <= before })
  }

  /// Two further videos: one of another size, `shift` frames away from the first one's key frames, and one of the same size.
  private func videos(shift: Int, offset: Int32) throws -> Epoch {
    var driver = EpochDriver()
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    var (large, same) = (try SyntheticMedia.video(), try SyntheticMedia.video())
    large.id = TrackID(.video, 2)
    large.codec = try Codec(.h264, record: ByteBuffer(bytes: SyntheticMedia.hex(Self.largeRecord)))
    same.id = TrackID(.video, 3)
    try driver.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio(), large, same]))
    for sample in SyntheticMedia.interleaved(seconds: 9, offset: 1000, isSteady: true) {
      try driver.receive(.sample(sample))
      guard sample.track == .video else { continue }
      for track in [large, same] {
        var further = sample
        further.track = track.id
        further.compositionOffset = offset
        further.decodeTime += Int64(1000 - offset)
        further.isSync = (Int(sample.decodeTime / 1000) + shift) % 60 == 0 || sample.decodeTime == 0
        try driver.receive(.sample(further))
      }
    }
    return driver.epoch
  }

  @Test(arguments: [0, 1000, 2000] as [Int32])
  func videosOfOnePictureAreVariantsWhereverTheirDecodersWait(_ offset: Int32) throws {
    let epoch = try videos(shift: 0, offset: offset)
    #expect(epoch.window.switchableVideos.map(\.number) == [1, 2])
    #expect(
      multivariant(epoch).filter { !$0.hasPrefix("#") } == ["epoch1/video/index.m3u8", "epoch1/video-2/index.m3u8"])
    #expect(multivariant(epoch, video: 3).filter { !$0.hasPrefix("#") } == ["epoch1/video-3/index.m3u8"])
    for segment in epoch.window.segments where segment.isComplete {
      let spans = [1, 2, 3].compactMap { segment.span(of: TrackID(.video, $0)) }
      #expect(spans.count == 3 && spans.allSatisfy { $0.isIndependent && $0.start == spans[0].start })
      #expect(spans.allSatisfy { $0.listed.duration == 60_000 })
      for span in spans { #expect(segment.keyFrameLength(of: span.track) != nil) }
    }
    let root = DASHManifest(epoch: epoch.view, source: .folder).root(publishTime: 0)
    let sets = root.children.flatMap(\.children).filter { $0.name == "AdaptationSet" }
    #expect(
      sets.map { set in set.children.filter { $0.name == "Representation" }.compactMap { $0["id"] } } == [
        ["video", "video-2"], ["audio"], ["video-3"],
      ])
  }

  @Test func aVideoWithKeyFramesElsewhereIsAProgrammeOfItsOwn() throws {
    let epoch = try videos(shift: 20, offset: 1000)
    #expect(epoch.window.switchableVideos.map(\.number) == [1])
    #expect(multivariant(epoch).filter { !$0.hasPrefix("#") } == ["epoch1/video/index.m3u8"])
    #expect(multivariant(epoch, video: 2).filter { !$0.hasPrefix("#") } == ["epoch1/video-2/index.m3u8"])
    #expect(multivariant(epoch, video: 2).contains { $0.hasPrefix("#EXT-X-MEDIA:TYPE=AUDIO") })
    func promises(_ rendition: Rendition) -> Bool {
      String(buffer: HLSMediaPlaylist(window: epoch.window, rendition: rendition).render())
        .contains("#EXT-X-INDEPENDENT-SEGMENTS")
    }
    #expect(promises(.video) && promises(.audio) && !promises(.further(.video, 2)))
  }
}
