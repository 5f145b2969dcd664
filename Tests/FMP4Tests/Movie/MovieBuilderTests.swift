@testable import FMP4
import NIOCore
import Support
import Testing

@Suite struct MovieBuilderTests {
  private let metadata = MovieMetadata(
    title: "cam", date: "2026-11-21T07:24:10.000Z", tool: "weir 0.1.0",
    creation: WallTime(nanoseconds: 1_795_245_850_000_000_000))

  /// What a publication with a reorder delay of two frames leaves: frames from decode time 0, presented from 2000.
  private func tables(seconds: Int = 2, offset: Int32 = 2000, mediaOffset: UInt64 = 1000) throws -> MovieTables {
    var segmenter = Segmenter()
    let tracks = [try SyntheticMedia.video(), try SyntheticMedia.audio()]
    var tables = MovieTables(tracks: tracks)
    var position = mediaOffset
    var events = segmenter.receive(.tracks(tracks))
    for sample in SyntheticMedia.interleaved(seconds: seconds, offset: offset) {
      events += segmenter.receive(.sample(sample))
    }
    events += segmenter.receive(.end(.finished))
    for case .fragment(let fragment) in events {
      let movieHeader = FragmentBoxes.interleavedHead(of: fragment).readableBytes
      tables.append(fragment.runs, mediaOffset: position + UInt64(movieHeader))
      position += UInt64(movieHeader + fragment.mediaByteCount)
    }
    return tables
  }

  private func boxes(_ tables: MovieTables, contentLength: UInt64 = 100_000) throws -> [Box] {
    let builder = try #require(MovieBuilder(tables, metadata: metadata))
    var bytes = Array(builder.movieHeader(contentLength: contentLength, blockSize: 4096).readableBytesView)
    #expect(bytes.count % 4096 == 0)
    // The mdat's contents follow in the file.
    let header = bytes.suffix(16)
    bytes.removeLast(16)
    #expect(Array(header.prefix(8)) == [0, 0, 0, 1] + Array("mdat".utf8))
    #expect(header.suffix(8).reduce(0) { $0 << 8 | UInt64($1) } == contentLength + 16)
    return try #require(Box.parse(bytes))
  }

  @Test func theHeadOfAMovieStaysAsItIs() throws {
    let boxes = try boxes(try tables())
    #expect(boxes.map(\.type) == ["ftyp", "moov", "free"])
    try Golden.check(boxes.prefix(2).map(\.description).joined(separator: "\n") + "\n", "movie-moov-first.txt")
  }

  @Test func chunkOffsetsCountFromTheHead() throws {
    let builder = try #require(MovieBuilder(try tables(), metadata: metadata))
    let movieHeader = builder.movieHeader(contentLength: 100_000, blockSize: 4096)
    let moov = try #require(try boxes(try tables()).first { $0.type == "moov" })
    let offsets = try #require(moov.first("trak/mdia/minf/stbl/stco"))
    let first = try #require(try tables().tracks.first?.table.chunks.first)
    #expect(offsets.number(8) == Int(first.offset) + movieHeader.readableBytes)
  }

  /// The video's two frames of reordering are trimmed, and so is the audio that lies before its first frame.
  @Test func editListsMakeTheTracksStartTogether() throws {
    let moov = try #require(try boxes(try tables()).first { $0.type == "moov" })
    let tracks = moov.all("trak")
    let video = try #require(tracks[0].first("edts/elst"))
    #expect(video.number(4) == 1)
    #expect(video.number(8) == 60_000)  // two seconds of 30000
    #expect(video.number(12) == 2000)
    let audio = try #require(tracks[1].first("edts/elst"))
    #expect(audio.number(4) == 1)
    // The first frame is shown two thirtieths of a second after the audio begins: 3200 ticks of 48000.
    #expect(audio.number(12) == 3200)
  }

  @Test func aTrackThatStartsLaterWaitsInAnEmptyEdit() throws {
    var tables = MovieTables(tracks: [try SyntheticMedia.video(), try SyntheticMedia.audio()])
    tables.append([run(.video, 30_000, at: 0, 30, 1000)], mediaOffset: 0)
    tables.append([run(.audio, 48_000, at: 24_000, 20, 1024)], mediaOffset: 9000)
    let moov = try #require(try boxes(tables).first { $0.type == "moov" })
    let audio = try #require(moov.all("trak")[1].first("edts/elst"))
    #expect(audio.number(4) == 2)
    #expect(audio.number(8) == 15_000)  // half a second of the movie's 30000
    #expect(audio.number(12) == 0xFFFF_FFFF)
    #expect(audio.number(24) == 0)
  }

  @Test func audioThatStartsMuchEarlierIsKeptAndTheVideoWaits() throws {
    var tables = MovieTables(tracks: [try SyntheticMedia.video(), try SyntheticMedia.audio()])
    tables.append([run(.audio, 48_000, at: 0, 94, 1024)], mediaOffset: 9000)
    tables.append([run(.video, 30_000, at: 30_000, 30, 1000)], mediaOffset: 0)
    let moov = try #require(try boxes(tables).first { $0.type == "moov" })
    let video = try #require(moov.all("trak")[0].first("edts/elst"))
    #expect(video.number(4) == 2)
    #expect(video.number(8) == 30_000)
    let audio = try #require(moov.all("trak")[1].first("edts/elst"))
    #expect(audio.number(4) == 1)
    #expect(audio.number(12) == 0)
  }

  @Test func offsetsBeyondFourGibibytesTake64Bits() throws {
    let headLength: UInt64 = 4096
    let limit = UInt64(UInt32.max) - headLength
    for (start, type) in [(limit, "stco"), (limit + 1, "co64")] {
      var tables = MovieTables(tracks: [try SyntheticMedia.video()])
      tables.append([run(.video, 30_000, at: 0, 30, 1000)], mediaOffset: start)
      let builder = try #require(MovieBuilder(tables, metadata: metadata))
      #expect(builder.movieHeader(contentLength: 1, blockSize: 4096).readableBytes == Int(headLength))
      let table = try #require(try boxes(tables).first { $0.type == "moov" }?.first("trak/mdia/minf/stbl"))
      let offsets = try #require(table.first(type))
      #expect(offsets.number(4) == 1)
      #expect(offsets.number(8, type == "co64" ? 8 : 4) == Int(start + headLength))
    }
  }

  /// Whatever the tables come to: what fills up is less than a block.
  @Test func theHeadIsNotLargerThanItsBlocks() throws {
    for fragments in [1, 40, 18_000] {
      var tables = MovieTables(tracks: [try SyntheticMedia.video(), try SyntheticMedia.audio()])
      for index in 0..<Int64(fragments) {
        tables.append(
          [run(.video, 30_000, at: index * 6000, 6, 1000), run(.audio, 48_000, at: index * 9216, 9, 1024)],
          mediaOffset: UInt64(index) * 90_000)
      }
      for annex in [0, 1, 4000, 50_000] {
        var builder = try #require(MovieBuilder(tables, metadata: metadata))
        builder.annex = ByteBuffer(repeating: 7, count: annex)
        var bytes = Array(builder.movieHeader(contentLength: 1_000_000, blockSize: 4096).readableBytesView)
        #expect(bytes.count % 4096 == 0)
        bytes.removeLast(16)
        let boxes = try #require(Box.parse(bytes))
        #expect(boxes.map(\.type) == ["ftyp", "moov", "free"])
        let free = try #require(boxes.last).payload
        #expect(free.prefix(annex).allSatisfy { $0 == 7 })
        #expect(free.count - annex < 4096, "\(free.count - annex) bytes of nothing")
      }
    }
  }

  /// A movieHeader in two pieces, for room that is there already: with what lies between them it is the movieHeader of that length.
  @Test func aHeadFillsRoomThatIsThere() throws {
    var builder = try #require(MovieBuilder(try tables(), metadata: metadata))
    builder.annex = ByteBuffer(repeating: 7, count: 100)
    let room = 8192
    let movieHeader = try #require(builder.movieHeader(contentLength: 100_000, filling: room, sparing: 16))
    #expect(
      movieHeader.mediaHeader.readableBytes == 16 && movieHeader.byteCount == movieHeader.front.readableBytes + 16)
    let between = [UInt8](repeating: 9, count: room - movieHeader.byteCount)
    let bytes = Array(movieHeader.front.readableBytesView) + between + Array(movieHeader.mediaHeader.readableBytesView)
    #expect(bytes.suffix(16) == (SyntheticMedia.hex("000000016d646174") + [0, 0, 0, 0, 0, 1, 0x86, 0xB0])[...])
    let boxes = try #require(Box.parse(Array(bytes.dropLast(16))))
    #expect(boxes.map(\.type) == ["ftyp", "moov", "free"])
    #expect(boxes[2].payload.prefix(101) == ([UInt8](repeating: 7, count: 100) + [9])[...])
    // It says the same as one that is inserted, of a place that is as far away.
    let same = try #require(
      Box.parse(Array(builder.movieHeader(contentLength: 100_000, blockSize: room).readableBytesView.dropLast(16))))
    #expect(boxes.prefix(2).map(\.description) == same.prefix(2).map(\.description))

    let least = movieHeader.byteCount + 16
    #expect(builder.movieHeader(contentLength: 1, filling: least, sparing: 16) != nil)
    #expect(builder.movieHeader(contentLength: 1, filling: least - 1, sparing: 16) == nil)
    #expect(builder.movieHeader(contentLength: 1, filling: 0, sparing: 0) == nil)
  }

  @Test func durationsBeyond32BitsTakeVersion1() throws {
    var tables = MovieTables(tracks: [try SyntheticMedia.video(timescale: 90_000)])
    // 14 hours of 90000 ticks in one frame a second.
    tables.append([run(.video, 90_000, at: 0, 50_400, 90_000)], mediaOffset: 0)
    let moov = try #require(try boxes(tables).first { $0.type == "moov" })
    for path in ["mvhd", "trak/tkhd", "trak/mdia/mdhd", "trak/edts/elst"] {
      #expect(moov.first(path)?.payload.first == 1, "\(path)")
    }
    #expect(moov.first("mvhd")?.number(24, 8) == 50_400 * 90_000)
  }

  @Test func aParameterChangeAddsASampleDescription() throws {
    let first = try SyntheticMedia.video()
    var second = first
    second.codec = Codec(try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264High)))
    var tables = MovieTables(tracks: [first])
    #expect(tables.canContinue(with: [second]))
    tables.append([run(.video, 30_000, at: 0, 30, 1000)], mediaOffset: 0)
    tables.change(to: [second])
    tables.append([run(.video, 30_000, at: 30_000, 30, 1000)], mediaOffset: 5000)
    tables.change(to: [first])
    tables.append([run(.video, 30_000, at: 60_000, 30, 1000)], mediaOffset: 10_000)
    let table = try #require(try boxes(tables).first { $0.type == "moov" }?.first("trak/mdia/minf/stbl"))
    #expect(table.first("stsd")?.number(4) == 2)
    let chunks = try #require(table.first("stsc"))
    #expect(chunks.number(4) == 3)
    #expect([16, 28, 40].map { chunks.number($0) } == [1, 2, 1])
  }

  @Test func anotherCodecOrRotationNeedsAnotherFile() throws {
    let tables = MovieTables(tracks: [try SyntheticMedia.video(), try SyntheticMedia.audio()])
    var rotated = try SyntheticMedia.video()
    rotated.rotation = .clockwise90
    var other = try SyntheticMedia.video()
    other.codec = Codec(try HEVC.Configuration(record: ByteBuffer(bytes: RecordFixture.hevcMain)))
    #expect(tables.canContinue(with: [try SyntheticMedia.audio(), try SyntheticMedia.video()]))
    #expect(!tables.canContinue(with: [rotated, try SyntheticMedia.audio()]))
    #expect(!tables.canContinue(with: [other, try SyntheticMedia.audio()]))
    #expect(!tables.canContinue(with: [try SyntheticMedia.video()]))
  }

  @Test func tracksWithoutSamplesAreLeftOut() throws {
    var tables = MovieTables(tracks: [try SyntheticMedia.video(), try SyntheticMedia.audio()])
    #expect(MovieBuilder(tables, metadata: metadata) == nil)
    tables.append([run(.audio, 48_000, at: 0, 94, 1024)], mediaOffset: 0)
    let moov = try #require(try boxes(tables).first { $0.type == "moov" })
    #expect(moov.all("trak").count == 1)
    #expect(moov.first("mvhd")?.number(12) == 48_000)
    let movieHeader = try #require(MovieBuilder(tables, metadata: metadata)).movieHeader(contentLength: 9, blockSize: 1)
    let header = try #require(BoxReader(movieHeader).first { $0.type == "moov" }).child("mvhd")
    #expect(try MovieReader.duration(header) == MediaTime(ticks: 94 * 1024, timescale: 48_000))
  }

  private func run(_ track: TrackID, _ timescale: UInt32, at start: Int64, _ count: Int, _ duration: UInt32) -> TrackRun
  {
    let sample = RunSample(size: 10, duration: duration, compositionOffset: 0, isSync: true)
    return TrackRun(
      track: track, timescale: timescale, baseDecodeTime: start, samples: Array(repeating: sample, count: count),
      byteCount: 10 * count, duration: Int64(count) * Int64(duration))
  }
}
