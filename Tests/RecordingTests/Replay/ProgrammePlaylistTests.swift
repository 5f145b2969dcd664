import FMP4
import Glibc
import HTTP
import NIOCore
import Publishing
@testable import Recording
@testable import RecordingFiles
import RecordingSupport
import Storage
@testable import Streams
import Support
import Testing

@Suite struct ProgrammePlaylistTests {
  /// So many segments of two seconds.
  private func index(_ count: Int, missing: Range<Int>? = nil) throws -> RecordingIndex {
    try index(1...count, missing: missing)
  }

  /// The same with the numbers that the stream gave them. The timeline of the epoch broke before those in `breaks`, its default
  /// tracks changed before those in `defaults`, and `torn` lacks a fragment. `then` has other tracks from a segment on.
  private func index(
    _ numbers: ClosedRange<Int>, missing: Range<Int>? = nil, breaks: [Int] = [], torn: Int? = nil,
    _ initSegment: InitSegment? = nil, then changes: [Int: InitSegment] = [:], defaults: [Int] = []
  ) throws -> RecordingIndex {
    var index = RecordingIndex()
    let usual = InitSegment(version: 1, tracks: [try SyntheticMedia.video(), try SyntheticMedia.audio()])
    index.change(to: initSegment ?? usual, at: 0)
    let fragment = try Self.fragment()
    let anchor = WallClockAnchor(mediaTime: .zero, wallTime: RecordingHarness.start)
    for number in numbers where missing?.contains(number) != true {
      if let change = changes[number] { index.change(to: change, at: UInt64(number) * 1_000_000 - 1) }
      var next = fragment
      let shift = Int64(number - 1) * 60_000
      next.start = MediaTime(ticks: shift, timescale: 30_000)
      next.end = MediaTime(ticks: shift + 60_000, timescale: 30_000)
      next.runs[0].baseDecodeTime = shift
      next.runs[1].baseDecodeTime = Int64(number - 1) * 96_000
      let offset = UInt64(number) * 1_000_000
      index.add(
        next, number: number, range: offset..<offset + 900_000, anchor: anchor,
        breaksBefore: breaks.filter { $0 <= number }.count,
        changesOfDefaultsBefore: defaults.filter { $0 <= number }.count)
      index.complete(number: number, fragmentCount: number == torn ? 2 : 1)
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
    var lines = RecordedMediaPlaylist(.interleaved, .ofEpoch)
    lines.extend(shorter)
    let before = lines.text.readableBytes
    let took = ContinuousClock().measure { lines.extend(longer) }
    #expect(lines.text.readableBytes - before < 100 && lines.lastNumber == 18_001)
    #expect(took < .milliseconds(10), "\(took)")
  }

  @Test func whatTheDiskDidNotTakeIsListedAsMissing() throws {
    var lines = RecordedMediaPlaylist(.interleaved, .ofEpoch)
    lines.extend(try index(10, missing: 4..<6))
    let text = String(buffer: lines.text)
    #expect(
      text.contains(
        "3.m4s\n#EXT-X-GAP\n#EXTINF:2.000000,\n4.m4s\n#EXT-X-GAP\n#EXTINF:2.000000,\n5.m4s\n#EXT-X-DISCONTINUITY\n"))
    #expect(lines.hasGaps)
  }

  @Test func aProgrammeLongerThanRewindingReachesLosesItsBeginning() throws {
    let archive = RewindArchive(length: MediaTime(milliseconds: 600_000))
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

  // MARK: Several files

  private func programme(_ indices: [RecordingIndex], length: Int64 = 3_600_000) throws -> RewindArchive {
    let archive = RewindArchive(length: MediaTime(milliseconds: length))
    for index in indices { archive.add(try source(index)) }
    return archive
  }

  private func text(_ archive: RewindArchive, _ rendition: Rendition = .interleaved) -> String {
    String(buffer: archive.playlist(rendition, LiveWindow(length: MediaTime(milliseconds: 60_000))).body)
  }

  /// Names of the segments, and `!` before those that are missing.
  private func listed(_ text: String) -> [String] {
    let lines = text.split(separator: "\n").map(String.init)
    return lines.indices.filter { lines[$0].hasSuffix(".m4s") }.map {
      ($0 >= 2 && lines[$0 - 2] == "#EXT-X-GAP" ? "!" : "") + lines[$0].dropLast(4)
    }
  }

  @Test func whatLiesBetweenTwoFilesIsListedAsMissing() throws {
    let archive = try programme([try index(1...4), try index(7...9)])
    let text = text(archive)
    #expect(listed(text) == ["1", "2", "3", "4", "!5", "!6", "7", "8", "9"])
    #expect(text.contains("#EXT-X-PLAYLIST-TYPE:EVENT\n") && text.contains("#EXT-X-VERSION:8\n"))
    #expect(text.contains("#EXT-X-GAP\n#EXTINF:2.000000,\n6.m4s\n#EXT-X-DISCONTINUITY\n#EXT-X-MAP"))
    #expect(archive.find(5) == nil && archive.find(7)?.index == 0)
  }

  @Test func filesThatFollowEachOtherAreOneProgramme() throws {
    let text = text(try programme([try index(1...4), try index(5...9)]))
    #expect(listed(text) == (1...9).map(String.init) && !text.contains("DISCONTINUITY"))
  }

  /// A time-shift buffer begins before a recording ends, and the other way round.
  @Test func whatTwoFilesHaveIsListedOnce() throws {
    let archive = try programme([try index(1...5, torn: 5), try index(4...9, torn: 9), try index(8...12)])
    let text = text(archive)
    #expect(listed(text) == (1...12).map(String.init) && !text.contains("DISCONTINUITY"))
    #expect(archive.find(5)?.index == 1 && archive.find(9)?.index == 1)
  }

  /// The last segment of a recording that was stopped has other bytes in the file than in memory.
  @Test func aSegmentOfWhichTheFileHasAPartIsMissing() throws {
    let archive = try programme([try index(1...8, torn: 4)])
    let text = text(archive)
    #expect(listed(text) == ["1", "2", "3", "!4", "5", "6", "7", "8"])
    #expect(archive.find(4) == nil && archive.find(3) != nil && archive.find(5) != nil)
    #expect(archive.find(time: 3 * 60_000, initVersion: 1, .video) == nil)
    #expect(archive.find(time: 4 * 60_000, initVersion: 1, .video)?.index == 4)
  }

  @Test func whatIsCutOffIsMissingFromThenOn() throws {
    let source = try source(try index(1...8))
    let archive = RewindArchive(length: MediaTime(milliseconds: 3_600_000))
    archive.add(source)
    #expect(listed(text(archive)).count == 8)
    // Segment 6 ends at 6,900,000.
    source.cut(at: 6_800_000)
    archive.add(try self.source(try index(9...10)))
    #expect(listed(text(archive)) == ["1", "2", "3", "4", "5", "!6", "!7", "!8", "9", "10"])
    #expect(archive.find(6) == nil)
  }

  @Test func aBreakBetweenTwoFilesIsTold() throws {
    let archive = try programme([try index(1...4), try index(5...8, breaks: [5]), try index(9...10, breaks: [5])])
    let text = text(archive)
    #expect(text.components("#EXT-X-DISCONTINUITY\n") == 1)
    #expect(text.contains("\n4.m4s\n#EXT-X-DISCONTINUITY\n#EXT-X-MAP"))
  }

  @Test func discontinuitiesAreCountedOverFilesThatAreGone() throws {
    let archive = try programme([
      try index(1...4), try index(5...8, breaks: [5]), try index(11...14, breaks: [5]),
      try index(15...20, breaks: [5, 15]),
    ])
    func sequence() -> Int {
      let line = text(archive).split(separator: "\n").first { $0.hasPrefix("#EXT-X-DISCONTINUITY-SEQUENCE:") }
      return line.flatMap { Int($0.dropFirst("#EXT-X-DISCONTINUITY-SEQUENCE:".count)) } ?? 0
    }
    #expect(sequence() == 0)
    let sources = archive.sources
    for (count, source) in zip([1, 2, 3], sources) {
      archive.remove(source)
      #expect(sequence() == count)
    }
    #expect(text(archive).contains("#EXT-X-MEDIA-SEQUENCE:15\n") && !text(archive).contains("EVENT"))
  }

  /// Only the interleaved layout has other tracks. Its number of discontinuities lasts when files go.
  @Test func anotherFirstAudioIsABreakOfTheInterleavedLayoutAlone() throws {
    var french = try SyntheticMedia.audio()
    french.language = "fra"
    let first = InitSegment(version: 1, tracks: [try SyntheticMedia.video(), try SyntheticMedia.audio()])
    let second = InitSegment(version: 2, tracks: [try SyntheticMedia.video(), french], continues: true)
      .following(first)
    let archive = try programme([try index(1...4, first), try index(5...8, second), try index(9...12, second)])
    func maps(_ rendition: Rendition) -> [Substring] {
      text(archive, rendition).split(separator: "\n").filter { $0.hasPrefix("#EXT-X-MAP") }
    }
    let (one, two) = ("#EXT-X-MAP:URI=\"init-1.mp4\"", "#EXT-X-MAP:URI=\"init-2.mp4\"")
    #expect(maps(.video).allSatisfy { $0 == one } && maps(.interleaved).map(String.init) == [one, two, two])
    #expect(maps(.audio).map(String.init) == [one, two, two])
    #expect(text(archive).components("#EXT-X-DISCONTINUITY\n") == 1)
    #expect(text(archive).contains("\n4.m4s\n#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"init-2.mp4\""))
    for rendition in [Rendition.video, .audio] {
      #expect(!text(archive, rendition).contains("#EXT-X-DISCONTINUITY"))
    }
    archive.remove(try #require(archive.sources.first))
    #expect(text(archive).contains("#EXT-X-DISCONTINUITY-SEQUENCE:1\n"))
    #expect(!text(archive, .video).contains("#EXT-X-DISCONTINUITY"))
    #expect(archive.initSegment(1, .video) == second.single(try SyntheticMedia.video()))
    #expect(archive.initSegment(1, .audio) == nil && archive.initSegment(2, .audio) == second.single(french))
  }

  /// Of several discontinuities in media that no file has, the list has one: that they are several shows in no number of it.
  @Test func `A segment keeps its number of discontinuities when the files before it go`() throws {
    for breaks in [[5], [5, 7], [5, 6, 7, 9]] {
      let archive = try programme([
        try index(1...4), try index(9...12, breaks: breaks), try index(13...16, breaks: breaks),
      ])
      #expect(try discontinuities(archive) == [1: 0, 9: 1, 13: 1], "\(breaks)")
      archive.remove(try #require(archive.sources.first))
      #expect(try discontinuities(archive) == [9: 1, 13: 1], "\(breaks)")
      archive.remove(try #require(archive.sources.first))
      #expect(try discontinuities(archive) == [13: 1], "\(breaks)")
    }
    // Where no list ever had a file before it, the stream's own count is the one.
    #expect(try discontinuities(try programme([try index(9...12, breaks: [5, 7])])) == [9: 2])
  }

  /// The default tracks change within the file in the middle, which goes first.
  @Test func `Changes of the default tracks in a file in the middle count when it is gone`() throws {
    var french = try SyntheticMedia.audio()
    french.language = "fra"
    let tracks = [try SyntheticMedia.video(), try SyntheticMedia.audio()]
    let first = InitSegment(version: 1, tracks: tracks)
    let second = InitSegment(version: 2, tracks: [tracks[0], french], continues: true).following(first)
    let third = InitSegment(version: 3, tracks: tracks, continues: true).following(second)
    let archive = try programme([
      try index(1...4, first), try index(5...10, first, then: [6: second, 8: third], defaults: [6, 8]),
      try index(11...14, third, defaults: [6, 8]),
    ])
    #expect(try discontinuities(archive) == [1: 0, 5: 0, 11: 2])
    #expect(try discontinuities(archive, .video) == [1: 0, 5: 0, 11: 0])
    archive.remove(archive.sources[1])
    #expect(try discontinuities(archive) == [1: 0, 11: 2])
    archive.remove(archive.sources[0])
    #expect(try discontinuities(archive) == [11: 2])
  }

  /// The number of discontinuities before each file's first segment that is listed.
  private func discontinuities(_ archive: RewindArchive, _ rendition: Rendition = .interleaved) throws -> [Int: Int] {
    let firsts = archive.sources.compactMap { $0.withIndex { $0.segments.first?.number } }
    var (count, number, found) = (0, 0, [Int: Int]())
    for line in text(archive, rendition).split(separator: "\n") {
      if line.hasPrefix("#EXT-X-MEDIA-SEQUENCE:") {
        number = try #require(Int(line.drop { $0 != ":" }.dropFirst()))
      } else if line.hasPrefix("#EXT-X-DISCONTINUITY-SEQUENCE:") {
        count = try #require(Int(line.drop { $0 != ":" }.dropFirst()))
      } else if line == "#EXT-X-DISCONTINUITY" {
        count += 1
      } else if !line.hasPrefix("#") {
        if firsts.contains(UInt32(number)) { found[number] = count }
        number += 1
      }
    }
    return found
  }

  @Test func filesOutOfReachAreLetGo() throws {
    let archive = RewindArchive(length: MediaTime(milliseconds: 10_000))
    var most = 0
    for file in 0..<400 {
      archive.add(try source(try index(file + 1...file + 1)))
      most = max(most, archive.sources.count)
    }
    // Ten seconds and five minutes, two seconds each.
    #expect(most <= 157, "\(most) files")
    #expect(archive.find(400) != nil && archive.find(300) != nil && archive.find(200) == nil)
  }
}

extension String {
  /// How often something occurs in it.
  fileprivate func components(_ part: String) -> Int {
    var count = 0
    var rest = self[...]
    while let found = rest.firstRange(of: part) {
      count += 1
      rest = rest[found.upperBound...]
    }
    return count
  }
}
