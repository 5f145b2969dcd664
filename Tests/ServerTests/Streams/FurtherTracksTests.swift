import FMP4
import NIOCore
import Support
import Testing

@testable import Server

/// A stream with several tracks of a kind is served as one that has the first of each alone.
@Suite struct FurtherTracksTests {
  private static let further = [TrackID(3), TrackID(4)]

  /// Nine seconds of video with one track of audio, and with further ones.
  private func stream(_ further: [TrackID], _ layout: StreamSettings.HLSLayout = .interleaved) throws -> EpochDriver {
    var settings = StreamSettings()
    settings.layout = layout
    var driver = EpochDriver(settings)
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    try driver.receive(
      .tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()] + further.map { try SyntheticMedia.audio($0) }))
    for sample in SyntheticMedia.interleaved(seconds: 9, offset: 1000, isSteady: true, furtherAudios: further) {
      try driver.receive(.sample(sample))
    }
    return driver
  }

  @Test(arguments: [StreamSettings.HLSLayout.interleaved, .separate])
  func everyRenditionIsTheSameWithFurtherTracks(_ layout: StreamSettings.HLSLayout) throws {
    let plain = try stream([], layout).epoch
    let rich = try stream(Self.further, layout).epoch
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
    #expect(
      HLSMultivariantPlaylist(epoch: rich.view, layout: layout).render()
        == HLSMultivariantPlaylist(epoch: plain.view, layout: layout).render())
    for rendition in Rendition.allCases {
      #expect(
        HLSMediaPlaylist(window: rich.window, rendition: rendition).render()
          == HLSMediaPlaylist(window: plain.window, rendition: rendition).render())
    }
    let manifests = [rich, plain].map { DASHManifest(epoch: $0.view, source: .folder).root(publishTime: 0).document }
    #expect(manifests[0] == manifests[1])
  }

  @Test func aViewerOfOneFileGetsTheSameFragments() throws {
    func shown(_ driver: EpochDriver) throws -> [ByteBuffer] {
      try driver.events.compactMap { event in
        if case .fragment(let fragment) = event { try fragment.shown.read() } else { nil }
      }
    }
    let (rich, plain) = (try shown(stream(Self.further)), try shown(stream([])))
    #expect(plain.count > 30 && rich == plain)
  }

  @Test func theWindowHoldsAllOfThem() throws {
    let epoch = try stream(Self.further).epoch
    #expect(epoch.initSegment?.tracks.map(\.id.rawValue) == [1, 2, 3, 4])
    for segment in epoch.window.segments where segment.isComplete {
      for track in UInt32(1)...4 { #expect(segment.span(of: TrackID(track))?.mediaBytes ?? 0 > 0) }
    }
  }
}
