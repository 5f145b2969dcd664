@testable import FMP4
import NIOCore
import Support
import Testing

/// Clips of a recording of ten seconds: key frames each two, 30 frames and 46.875 frames of audio a second, presented 1/30 s
/// after they are decoded.
@Suite("Clips of a recording")
struct ClipTablesTests {
  private static let metadata = MovieMetadata(
    title: "cam", date: "2026-11-21T07:24:10Z", tool: "weir", creation: 1_795_245_850_000_000_000)

  private static func time(_ milliseconds: Int64) -> MediaTime { MediaTime(milliseconds: milliseconds) }

  private struct Made {
    let recording: SyntheticRecording
    let clip: ClipTables.Clip?
    /// Starts of the fragments that were taken.
    var taken: [MediaTime] = []
    /// Whether it asked for another one behind them.
    var wantsMore = true
  }

  private func made(
    _ wanted: Range<MediaTime>, _ tracks: [TrackDescription]? = nil, audio: TrackID? = nil
  ) throws -> Made {
    let recording = SyntheticRecording(
      try tracks ?? [SyntheticMedia.video(), SyntheticMedia.audio()], seconds: 10, offset: 1000)
    var assembler = FragmentAssembler()
    assembler.change(to: recording.tracks)
    var tables = ClipTables(wanted, tracks: recording.tracks, audio: audio)
    var (taken, wantsMore) = ([MediaTime](), true)
    for box in BoxReader(ByteBuffer(bytes: recording.bytes)) where wantsMore {
      switch box.type {
      case "prft": assembler.reference(box)
      case "moof": try assembler.head(box)
      case "mdat":
        guard let walked = try assembler.media(box.header) else { continue }
        taken.append(walked.fragment.start)
        wantsMore = tables.append(walked)
      default: break
      }
    }
    return Made(
      recording: recording, clip: tables.make(metadata: Self.metadata), taken: taken, wantsMore: wantsMore)
  }

  /// A track of a clip, as a player finds it.
  private struct Track {
    var durations: [Int] = []
    var sizes: [Int] = []
    var syncs: [Int] = []
    /// First bytes of the samples, at the places that the tables state.
    var bytes: [UInt8] = []
    var mediaTime: Int?

    init(_ trak: Box, of file: [UInt8]) throws {
      let table = try #require(trak.first("mdia/minf/stbl"))
      let stts = try #require(table.first("stts"))
      for entry in 0..<stts.number(4) {
        durations += [Int](repeating: stts.number(12 + 8 * entry), count: stts.number(8 + 8 * entry))
      }
      let stsz = try #require(table.first("stsz"))
      sizes = (0..<stsz.number(8)).map { stsz.number(4) != 0 ? stsz.number(4) : stsz.number(12 + 4 * $0) }
      if let stss = table.first("stss") { syncs = (0..<stss.number(4)).map { stss.number(8 + 4 * $0) } }
      let (stsc, stco) = (try #require(table.first("stsc")), try #require(table.first("stco")))
      let runs = (0..<stsc.number(4)).map { (first: stsc.number(8 + 12 * $0), count: stsc.number(12 + 12 * $0)) }
      var sample = 0
      for chunk in 1...stco.number(4) {
        var at = stco.number(4 + 4 * chunk)
        for _ in 0..<(runs.last { $0.first <= chunk }?.count ?? 0) {
          bytes.append(file[at])
          at += sizes[sample]
          sample += 1
        }
      }
      mediaTime = trak.first("edts/elst").map { $0.number(12) }
    }
  }

  private func tracks(_ made: Made) throws -> [Track] {
    let clip = try #require(made.clip)
    let head = Array(clip.movieHeader.readableBytesView)
    let file = head + made.recording.bytes[Int(clip.media.lowerBound)..<Int(clip.media.upperBound)]
    let moov = try #require(Box.parse(file)?.first { $0.type == "moov" })
    return try moov.all("trak").map { try Track($0, of: file) }
  }

  @Test func `A clip begins with the key frame before, which an edit hides`() throws {
    let made = try made(Self.time(3000)..<Self.time(5000))
    let clip = try #require(made.clip)
    let video = try #require(try tracks(made).first)
    // Frame 59 is shown at 2 s; the one that is shown at 3 s or just before is 89.
    #expect(clip.shown == Self.time(3000)..<Self.time(5000))
    // From the key frame 60 on: 59 is not decoded. 148 is the last that is shown before 5 s. 120 is the next key frame.
    #expect(video.bytes == (60..<149).map { UInt8($0) } && video.syncs == [1, 61])
    #expect(video.mediaTime == (89 - 60) * 1000 + 1000)
  }

  @Test func `Its samples are those of the recording, at the places that it states`() throws {
    for (start, end) in [(0, 1000), (1999, 2001), (4000, 10_000), (700, 9300), (9900, 20_000)] as [(Int64, Int64)] {
      let made = try made(Self.time(start)..<Self.time(end))
      let found = try tracks(made)
      #expect(found.count == 2, "\(start)")
      let video = found[0]
      // Numbers that rise by one, from a key frame on.
      #expect(video.bytes.first.map { $0 % 60 } == 0 && video.syncs.first == 1, "\(start)")
      #expect(zip(video.bytes, video.bytes.dropFirst()).allSatisfy { $0 &+ 1 == $1 }, "\(start)")
      #expect(zip(found[1].bytes, found[1].bytes.dropFirst()).allSatisfy { $0 &+ 1 == $1 }, "\(start)")
      #expect(video.durations.allSatisfy { $0 == 1000 } && video.sizes.allSatisfy { $0 == 100 })
      #expect(found[1].sizes.allSatisfy { $0 == 20 })
    }
  }

  @Test func `It tells its length, to a frame`() throws {
    for (start, end, length) in [(3000, 5000, 2.0), (4000, 20_000, 6.0), (700, 701, 0.001), (-5000, 2000, 2.0)] {
      let clip = try #require(try made(Self.time(Int64(start))..<Self.time(Int64(end))).clip)
      #expect(abs(clip.duration.seconds - length) <= 1 / 30.0 + 0.001, "\(start): \(clip.duration.seconds)")
    }
  }

  @Test func `No fragment is asked for that begins half a second behind the end`() throws {
    let made = try made(Self.time(1000)..<Self.time(2000))
    let last = try #require(made.taken.last)
    #expect(!made.wantsMore && last >= Self.time(2500))
    #expect(made.taken.dropLast().allSatisfy { $0 < Self.time(2500) })
  }

  @Test func `Of what is not there is no clip`() throws {
    #expect(try made(Self.time(20_000)..<Self.time(21_000)).clip == nil)
    #expect(try made(Self.time(-5000)..<Self.time(-1000)).clip == nil)
    let empty = ClipTables(Self.time(0)..<Self.time(1000), tracks: [try SyntheticMedia.video()])
    #expect(empty.make(metadata: Self.metadata) == nil)
  }

  @Test func `A frame that begins within the asked millisecond counts`() throws {
    // Frame 19 is shown at 20/30 s: 666.67 ms, and a request says 666.
    for (start, expected) in [(666, 20), (667, 20), (665, 19)] as [(Int64, Int64)] {
      let clip = try #require(try made(Self.time(start)..<Self.time(3000)).clip)
      #expect(clip.shown.lowerBound == MediaTime(ticks: expected * 1000, timescale: 30_000), "\(start)")
    }
  }

  @Test func `Another audio can be chosen, and one that is not there leaves the first`() throws {
    let tracks = [try SyntheticMedia.video(), try SyntheticMedia.audio()]
    for wanted in [TrackID.audio, TrackID(4)] {
      let found = try self.tracks(try made(Self.time(0)..<Self.time(1000), tracks, audio: wanted))
      #expect(found.count == 2 && found[1].sizes.first == 20)
    }
    let silent = try self.tracks(try made(Self.time(0)..<Self.time(1000), [SyntheticMedia.video()]))
    #expect(silent.count == 1)
  }
}
