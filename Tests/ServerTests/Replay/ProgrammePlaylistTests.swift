import FMP4
import Glibc
import Ingest
import NIOCore
import Support
import Testing

@testable import Server

@Suite struct ProgrammePlaylistTests {
  /// So many segments of two seconds.
  private func index(_ count: Int, missing: Range<Int>? = nil) throws -> RecordingIndex {
    var index = RecordingIndex()
    index.change(to: [try SyntheticMedia.video(), try SyntheticMedia.audio()], version: 1, at: 0)
    let fragment = try Self.fragment()
    let anchor = WallClockAnchor(mediaTime: .zero, wallNanoseconds: RecordingHarness.start)
    for number in 1...count where missing?.contains(number) != true {
      var next = fragment
      let shift = Int64(number - 1) * 60_000
      next.start = MediaTime(ticks: shift, timescale: 30_000)
      next.end = MediaTime(ticks: shift + 60_000, timescale: 30_000)
      next.runs[0].baseDecodeTime = shift
      next.runs[1].baseDecodeTime = Int64(number - 1) * 96_000
      let offset = UInt64(number) * 1_000_000
      index.add(next, number: number, range: offset..<offset + 900_000, anchor: anchor)
    }
    index.finish()
    return index
  }

  private static func fragment() throws -> Fragment {
    var segmenter = Segmenter()
    var events = segmenter.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 3) { events += segmenter.receive(.sample(sample)) }
    for case .fragment(let fragment) in events where fragment.startsSegment {
      var fragment = fragment
      fragment.payloads = []
      return fragment
    }
    throw RecordingError("no fragment")
  }

  private func source(_ index: RecordingIndex) throws -> ReplaySource {
    let file = SharedFile(taking: open("/dev/null", O_RDONLY), kind: .disk)
    return ReplaySource(stream: try #require(StreamName("cam")), name: "20261121T072410Z", file: file, index: index)
  }

  @Test func tenHoursRenderInMilliseconds() throws {
    let source = try source(try index(18_000))
    let clock = ContinuousClock()
    var playlist: PreencodedResponse?
    let first = clock.measure { playlist = source.document(.media(.interleaved), target: nil) }
    let again = clock.measure { playlist = source.document(.media(.interleaved), target: nil) }
    let text = String(buffer: try #require(playlist).body)
    #expect(text.hasPrefix("#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:1\n"))
    #expect(text.contains("#EXT-X-PLAYLIST-TYPE:VOD\n") && text.hasSuffix("\n18000.m4s\n#EXT-X-ENDLIST\n"))
    // Ten milliseconds in a release build on an idle machine; this one may be neither.
    #expect(first < .milliseconds(500) && again < .milliseconds(5), "\(first), then \(again)")
    print("10 h: \(text.utf8.count) bytes, rendered in \(first), again in \(again)")
    let bytes = source.withIndex { index in
      index.segments.count * MemoryLayout<RecordingIndex.Segment>.stride
        + index.spans.count * MemoryLayout<RecordingIndex.Span>.stride
    }
    #expect(bytes <= 18_000 * 80)
  }

  @Test func oneMoreSegmentCostsOneMoreLine() throws {
    let longer = try index(18_001)
    var shorter = longer
    shorter.segments.removeLast()
    var lines = RecordedLines(.interleaved, .ofEpoch)
    lines.extend(shorter)
    let before = lines.text.readableBytes
    let took = ContinuousClock().measure { lines.extend(longer) }
    #expect(lines.text.readableBytes - before < 100 && lines.lastNumber == 18_001)
    #expect(took < .milliseconds(10), "\(took)")
  }

  @Test func whatTheDiskDidNotTakeIsListedAsMissing() throws {
    var lines = RecordedLines(.interleaved, .ofEpoch)
    lines.extend(try index(10, missing: 4..<6))
    let text = String(buffer: lines.text)
    #expect(
      text.contains(
        "3.m4s\n#EXT-X-GAP\n#EXTINF:2.000000,\n4.m4s\n#EXT-X-GAP\n#EXTINF:2.000000,\n5.m4s\n#EXT-X-DISCONTINUITY\n"))
    #expect(lines.hasGaps)
  }

  @Test func aProgrammeLongerThanRewindingReachesLosesItsBeginning() throws {
    let archive = EpochArchive(length: MediaTime(milliseconds: 600_000))
    let index = try index(1000)
    let source = try source(index)
    archive.add(source)
    let window = LiveWindow(length: MediaTime(milliseconds: 60_000))
    let text = String(buffer: archive.playlist(.interleaved, window).body)
    // 700 segments lie further back than ten minutes; lists begin with every 64th.
    #expect(text.contains("#EXT-X-MEDIA-SEQUENCE:641\n") && !text.contains("PLAYLIST-TYPE"))
    #expect(text.contains("\n641.m4s\n") && !text.contains("\n640.m4s\n") && text.contains("\n1000.m4s\n"))
    #expect(archive.find(300) == nil && archive.find(600)?.index == 599)
  }
}
