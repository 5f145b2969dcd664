import FMP4
import NIOCore
import ServerSupport
@testable import Streams
import StreamSupport
import Support
import Testing

/// A stream whose audio is ahead of its video when it ends: the rest of the audio comes in fragments beside the last video.
@Suite struct PartsAtTheEndTests {
  private static let further = TrackID(.audio, 2)

  /// 8.3 seconds of video beside 9 seconds of audio.
  private func stream(_ further: [TrackID]) throws -> EpochDriver {
    var settings = StreamSettings()
    settings.layout = .separate
    var driver = EpochDriver(settings)
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    try driver.receive(
      .tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()] + further.map { try SyntheticMedia.audio($0) }))
    for sample in SyntheticMedia.interleaved(seconds: 9, isSteady: true, furtherAudios: further)
    where sample.track != .video || sample.decodeTime < 249_000 {
      try driver.receive(.sample(sample))
    }
    try driver.end()
    return driver
  }

  /// RFC 8216bis §4.4.4.9: only the last part of a segment may be shorter than 85 % of PART-TARGET.
  @Test(arguments: [[], [Self.further]] as [[TrackID]])
  func onlyTheLastPartIsShort(_ further: [TrackID]) throws {
    let window = try stream(further).epoch.window
    let target = try #require(window.partTarget)
    let last = try #require(window.segments.last)
    #expect(last.isComplete && last.start == MediaTime(milliseconds: 8000))
    let tracks: [TrackID?] = [nil, .audio] + further.map(Optional.some)
    for track in tracks {
      let parts = last.parts(of: track, isAudio: track != nil)
      #expect(parts.count >= 2 && parts.allSatisfy { $0.duration <= target }, "\(parts)")
      #expect(parts.dropLast().allSatisfy { $0.duration.seconds >= 0.85 * target.seconds }, "\(parts)")
    }
    #expect(last.parts(of: .audio, isAudio: true).count > last.parts(of: nil, isAudio: false).count)
  }

  /// The parts are the segment's bytes, one after another, and as long together.
  @Test(arguments: [[], [Self.further]] as [[TrackID]])
  func thePartsAreTheSegment(_ further: [TrackID]) throws {
    let tracks: [TrackID?] = [nil, .video, .audio] + further.map(Optional.some)
    for segment in try stream(further).epoch.window.segments {
      for track in tracks {
        let parts = segment.parts(of: track, isAudio: false)
        let whole = try segment.pieces(of: track).read()
        #expect(parts.count == segment.partCount(of: track) && segment.pieces(ofPart: parts.count, of: track) == nil)
        #expect(parts.map(\.index) == Array(0..<parts.count))
        var joined = ByteBuffer()
        for part in parts {
          var bytes = try #require(segment.pieces(ofPart: part.index, of: track)).read()
          #expect(part.bytes == joined.writerIndex..<(joined.writerIndex + bytes.readableBytes))
          joined.writeBuffer(&bytes)
        }
        #expect(joined == whole && whole.readableBytes > 0)
      }
      let sum = segment.parts(of: nil, isAudio: false).reduce(0) { $0 + $1.duration.seconds }
      #expect(abs(sum - segment.duration.seconds) < 1e-6)
    }
  }
}
