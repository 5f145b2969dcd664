@testable import FMP4
import Glibc
import NIOCore
import RecordingFormat
import Support
import Testing

@Suite struct RecordingScannerTests {
  private struct Recording {
    var bytes: [UInt8] = []
    var tables: MovieTables
    /// Where fragments end.
    var ends: [Int] = []
  }

  /// A recording as it is written: init segment, fragments, and a parameter change after each of `changes`.
  private func record(
    _ parts: [[TrackDescription]], seconds: Int = 1,
    sealing: (_ offset: Int, _ content: [UInt8]) -> [UInt8] = { _, _ in [] }
  ) throws -> Recording {
    var segmenter = Segmenter()
    var recording = Recording(tables: MovieTables(tracks: parts[0]))
    for (index, tracks) in parts.enumerated() {
      var events = segmenter.receive(.tracks(tracks))
      for var sample in SyntheticMedia.interleaved(seconds: seconds, offset: 1000) {
        sample.decodeTime += Int64(index * seconds) * (sample.track == .video ? 30_000 : 48_000)
        events += segmenter.receive(.sample(sample))
      }
      events += segmenter.receive(.discontinuity)
      for event in events {
        switch event {
        case .initialization(let initSegment) where index == 0:
          recording.bytes += Array(initSegment.interleaved.readableBytesView)
        case .initialization(let initSegment):
          recording.tables.change(to: initSegment.tracks)
          let box = Array(ParameterChange.box(initSegment).readableBytesView)
          recording.bytes += sealing(recording.bytes.count, box) + box
        case .fragment(let fragment):
          let clock = WallClockAnchor(mediaTime: .zero, wallTime: 1_795_245_850_000_000_000)
          let head = Array(FragmentBoxes.interleavedHead(of: fragment, clock: clock).readableBytesView)
          let content = head + fragment.payloads.flatMap { Array($0.readableBytesView) }
          recording.bytes += sealing(recording.bytes.count, content)
          recording.tables.append(fragment.runs, mediaOffset: UInt64(recording.bytes.count + head.count))
          recording.bytes += content
          recording.ends.append(recording.bytes.count)
        default: break
        }
      }
    }
    return recording
  }

  private func scan(
    _ bytes: [UInt8], comparing comparison: RecordingScanner.Comparison = .uncertain,
    crc: (@Sendable (ByteBuffer) -> UInt32)? = nil
  ) -> RecordingScanner.Content {
    var scanner = RecordingScanner(fileSize: UInt64(bytes.count), comparing: comparison, crc: crc)
    for _ in 0...2 * bytes.count {
      switch scanner.step {
      case .finished: return scanner.content
      case .read(let offset, let length):
        guard Int(offset) + length <= bytes.count else {
          Issue.record("reads \(length) bytes at \(offset) of \(bytes.count)")
          return scanner.content
        }
        scanner.receive(ByteBuffer(bytes: bytes[Int(offset)..<Int(offset) + length]))
      case .compare(let offset, let length, let checksum):
        let found = crc?(ByteBuffer(bytes: bytes[Int(offset)..<Int(offset) + length]))
        scanner.compared(found == checksum ? .equal : .different)
      }
    }
    Issue.record("it does not come to an end")
    return scanner.content
  }

  // MARK: A movie already

  /// Gives the scanner a movie whose bytes behind the head are not there, and how many it asked for.
  private func scan(head: [UInt8], size: UInt64) -> (RecordingScanner.Content, read: Int) {
    var scanner = RecordingScanner(fileSize: size, crc: Self.crc)
    var read = 0
    while case .read(let offset, let length) = scanner.step, read < 1 << 24 {
      read += length
      let known = head.dropFirst(Int(clamping: offset)).prefix(length)
      scanner.receive(ByteBuffer(bytes: known + [UInt8](repeating: 0, count: length - known.count)))
    }
    return (scanner.content, read)
  }

  /// Ten hours of frames of all sizes: of such tables only the outermost headers are read.
  @Test func aMovieWithTablesOfAnySizeIsKnownByAFewPages() throws {
    var tables = MovieTables(tracks: [try SyntheticMedia.video()])
    let samples = (0..<10_000).map {
      RunSample(size: UInt32(1 + $0), duration: 1001, compositionOffset: 0, isSync: $0 == 0)
    }
    let bytes = samples.reduce(0) { $0 + Int($1.size) }
    for index in 0..<440 {
      tables.append(
        [
          TrackRun(
            track: .video, timescale: 30_000, baseDecodeTime: Int64(index) * 10_010_000, samples: samples,
            byteCount: bytes, duration: 10_010_000)
        ], mediaOffset: UInt64(index * bytes))
    }
    let metadata = MovieMetadata(title: "cam", date: "", tool: "", creation: .zero)
    let content = UInt64(440 * bytes)
    let builder = try #require(MovieBuilder(tables, metadata: metadata))
    let head = Array(builder.movieHeader(contentLength: content, blockSize: 4096).readableBytesView)
    #expect(head.count > 16 << 20)
    let (found, read) = scan(head: head, size: UInt64(head.count) + content)
    guard case .finished = found else {
      Issue.record("\(found)")
      return
    }
    #expect(read < 8 * BoxWalk.page)
    // Torn within its tables it is nothing yet.
    guard case .unknown = scan(head: head, size: 16 << 20).0 else {
      Issue.record("a movie without its end")
      return
    }
  }

  @Test func largeTablesBeforeFragmentsAreNotTakenForAWholeMovie() {
    func box(_ type: String, _ payload: [UInt8]) -> [UInt8] {
      [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: (payload.count + 8) >> $0) } + Array(type.utf8) + payload
    }
    let tables = box("mvhd", [UInt8](repeating: 0, count: 100)) + box("trak", [UInt8](repeating: 0, count: 17 << 20))
    let mixed = box("moov", tables + box("mvex", []))
    guard case .mixed = scan(head: mixed, size: UInt64(mixed.count)).0 else {
      Issue.record("taken for something else")
      return
    }
    // Children that do not fill it, one that is too large, and none at all.
    for odd in [
      tables + [0, 0, 0], tables + [0, 0, 0, 9] + Array("udta".utf8), [UInt8](repeating: 0, count: 17 << 20),
      Array(tables.dropFirst(108)),
    ] {
      let movie = box("moov", odd)
      guard case .unknown = scan(head: movie, size: UInt64(movie.count)).0 else {
        Issue.record("taken for a movie")
        continue
      }
    }
  }

  // MARK: Sealed

  /// Any function of all bytes will do.
  private static let crc: @Sendable (ByteBuffer) -> UInt32 = { bytes in
    bytes.readableBytesView.reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 }
  }

  /// Every fragment is sealed; `durable` tells how much of what was written before it was durable then.
  private func recordSealed(
    _ parts: [[TrackDescription]], seconds: Int = 1, durable: (Int) -> Int = { _ in 0 }
  ) throws -> Recording {
    try record(parts, seconds: seconds) { offset, content in
      let seal = RecordingSeal(
        length: UInt32(content.count), checksum: Self.crc(ByteBuffer(bytes: content)),
        durableLength: UInt64(durable(offset)))
      return Array(seal.box(crc: Self.crc).readableBytesView)
    }
  }

  /// `make torture`: at every byte of the last 64 KiB.
  @Test func aSealedFileTornAtAnyByteKeepsItsWholeFragments() throws {
    let tracks = [try SyntheticMedia.video(), try SyntheticMedia.audio()]
    let recording = try recordSealed([tracks], seconds: TestRun.isTorture ? 16 : 1)
    let beginning = try #require(recording.ends.first)
    let first = max(0, recording.bytes.count - 65_536)
    if TestRun.isTorture { #expect(first > beginning) }
    for length in stride(from: first, through: recording.bytes.count, by: TestRun.isTorture ? 1 : 37) {
      for garbage in [[], [UInt8](repeating: 0, count: 50), [UInt8](repeating: 0xA5, count: 5000)] {
        let content = scan(Array(recording.bytes.prefix(length)) + garbage, crc: Self.crc)
        // Garbage may begin with the very bytes that were torn off.
        let same = length + zip(garbage, recording.bytes[length...]).prefix { $0 == $1 }.count
        let whole = recording.ends.last { $0 <= same }
        guard case .fragmented(let tables, let kept) = content else {
          #expect(length < beginning)
          continue
        }
        if let whole { #expect(kept == UInt64(whole)) } else { #expect(tables.sampleCount == 0) }
      }
    }
  }

  @Test func aChangedByteCutsTheFileBeforeItsFragment() throws {
    var changed = try SyntheticMedia.video()
    changed.codec = Codec(try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264High)))
    let recording = try recordSealed([[try SyntheticMedia.video()], [changed]])
    let first = try #require(recording.ends.first)
    for index in stride(from: first, to: recording.bytes.count, by: TestRun.isTorture ? 1 : 11) {
      var bytes = recording.bytes
      bytes[index] ^= 0x10
      guard case .fragmented(_, let kept) = scan(bytes, crc: Self.crc) else {
        Issue.record("not recognised")
        continue
      }
      // What is not sealed itself stands between two fragments: their seals, and the change of parameters.
      let whole = try #require(recording.ends.last { $0 <= index })
      #expect(kept >= UInt64(whole) && kept <= UInt64(index), "changed at \(index)")
    }
  }

  @Test func whatWasDurableIsNotComparedUnlessAsked() throws {
    let recording = try recordSealed([[try SyntheticMedia.video()]]) { $0 }
    var bytes = recording.bytes
    bytes[recording.ends[1] - 1] ^= 1
    guard case .fragmented(_, let kept) = scan(bytes, crc: Self.crc),
      case .fragmented(_, let keptOfAll) = scan(bytes, comparing: .all, crc: Self.crc)
    else {
      Issue.record("not recognised")
      return
    }
    #expect(kept == UInt64(bytes.count))
    #expect(keptOfAll == UInt64(recording.ends[0]))
  }

  @Test func aSealedFileHasTheTablesOfItsRecorder() throws {
    var changed = try SyntheticMedia.video()
    changed.codec = Codec(try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264High)))
    let audio = try SyntheticMedia.audio()
    let recording = try recordSealed([[try SyntheticMedia.video(), audio], [changed, audio]])
    for crc in [Self.crc, nil] {
      guard case .fragmented(let tables, let length) = scan(recording.bytes, crc: crc) else {
        Issue.record("not recognised")
        return
      }
      #expect(length == UInt64(recording.bytes.count))
      #expect(head(tables) == head(recording.tables))
    }
  }

  @Test func notesBetweenFragmentsAreReadAndChangeNothing() throws {
    let content = ByteBuffer(string: "something was missing here")
    let note = Array(try #require(RecordingMetadataBox.box(content, crc: Self.crc)).readableBytesView)
    var places: [UInt64] = []
    var count = 0
    // Before each second seal.
    let recording = try record([[try SyntheticMedia.video(), try SyntheticMedia.audio()]]) { offset, content in
      let seal = RecordingSeal(
        length: UInt32(content.count), checksum: Self.crc(ByteBuffer(bytes: content)), durableLength: 0)
      count += 1
      guard count % 2 == 1 else { return Array(seal.box(crc: Self.crc).readableBytesView) }
      places.append(UInt64(offset))
      return note + Array(seal.box(crc: Self.crc).readableBytesView)
    }
    #expect(places.count >= 2)
    let (found, notes) = scanWithNotes(recording.bytes)
    guard case .fragmented(let tables, let length) = found else {
      Issue.record("not recognised")
      return
    }
    #expect(length == UInt64(recording.bytes.count) && head(tables) == head(recording.tables))
    #expect(notes.map(\.offset) == places && notes.allSatisfy { $0.content == content })

    // One that is not whole is no note, and takes nothing with it.
    for byte in 12..<note.count {
      var damaged = recording.bytes
      damaged[Int(places[1]) + byte] ^= 1
      let (found, notes) = scanWithNotes(damaged)
      guard case .fragmented(_, let length) = found else {
        Issue.record("not recognised")
        return
      }
      #expect(length == UInt64(damaged.count) && notes.count == places.count - 1)
    }
    #expect(RecordingMetadataBox.box(ByteBuffer(repeating: 0, count: 1009), crc: Self.crc) == nil)
  }

  private func scanWithNotes(_ bytes: [UInt8]) -> (
    RecordingScanner.Content, notes: [(offset: UInt64, content: ByteBuffer)]
  ) {
    var scanner = RecordingScanner(fileSize: UInt64(bytes.count), crc: Self.crc)
    while true {
      switch scanner.step {
      case .finished: return (scanner.content, scanner.notes)
      case .read(let offset, let length):
        scanner.receive(ByteBuffer(bytes: bytes[Int(offset)..<Int(offset) + length]))
      case .compare(let offset, let length, let checksum):
        let found = Self.crc(ByteBuffer(bytes: bytes[Int(offset)..<Int(offset) + length]))
        scanner.compared(found == checksum ? .equal : .different)
      }
    }
  }

  // MARK: Not sealed

  private func head(_ tables: MovieTables) -> ByteBuffer? {
    let metadata = MovieMetadata(title: "cam", date: "", tool: "", creation: .zero)
    return MovieBuilder(tables, metadata: metadata)?.movieHeader(contentLength: 1, blockSize: 4096)
  }

  @Test func theTablesOfAWholeFileAreThoseOfTheRecorder() throws {
    let recording = try record([[try SyntheticMedia.video(), try SyntheticMedia.audio()]])
    guard case .fragmented(let tables, let length) = scan(recording.bytes) else {
      Issue.record("not recognised")
      return
    }
    #expect(length == UInt64(recording.bytes.count))
    #expect(tables.sampleCount == 76)
    #expect(head(tables) == head(recording.tables))
  }

  /// Hybrid files of ffmpeg and OBS hide what they will be in front of the `moov` that counts until they are closed.
  @Test func anFtypHiddenBeforeTheMovieChangesNothing() throws {
    let recording = try record([[try SyntheticMedia.video(), try SyntheticMedia.audio()]])
    let movie = try #require(Box.parse(recording.bytes)?.first { $0.type == "moov" }).offset
    let hidden: [UInt8] = [0, 0, 0, 24] + Array("free".utf8) + [0, 0, 0, 16] + Array("ftypisom".utf8) + [0, 0, 2, 0]
    let bytes = Array(recording.bytes[..<movie]) + hidden + Array(recording.bytes[movie...])
    for crc in [Self.crc, nil] {
      guard case .fragmented(let tables, let length) = scan(bytes, crc: crc) else {
        Issue.record("not recognised")
        return
      }
      #expect(length == UInt64(bytes.count) && tables.sampleCount == 76)
    }
  }

  @Test func aParameterChangeIsReadAgain() throws {
    var changed = try SyntheticMedia.video()
    changed.codec = Codec(try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264High)))
    let audio = try SyntheticMedia.audio()
    let recording = try record([[try SyntheticMedia.video(), audio], [changed, audio]])
    guard case .fragmented(let tables, _) = scan(recording.bytes) else {
      Issue.record("not recognised")
      return
    }
    #expect(tables.tracks.map(\.descriptions.count) == [2, 1])
    #expect(head(tables) == head(recording.tables))
  }

  @Test func aFileTornAtAnyByteKeepsItsWholeFragments() throws {
    let recording = try record([[try SyntheticMedia.video()]])
    let beginning = try #require(recording.ends.first)
    // Every byte of the last fragment and of the one before, and every 31st of the rest.
    let last = recording.ends[recording.ends.count - 3]
    for length in Array(stride(from: 0, to: last, by: 31)) + Array(last..<recording.bytes.count) {
      let content = scan(Array(recording.bytes.prefix(length)))
      let whole = recording.ends.last { $0 <= length }
      guard case .fragmented(let tables, let kept) = content else {
        #expect(length < beginning)
        continue
      }
      if let whole {
        #expect(kept == UInt64(whole))
        #expect(tables.sampleCount > 0)
      } else {
        #expect(tables.sampleCount == 0)
      }
    }
  }

  @Test func garbageBehindTheFragmentsIsLeftOut() throws {
    let recording = try record([[try SyntheticMedia.video(), try SyntheticMedia.audio()]])
    for garbage in [[UInt8](repeating: 0, count: 100), [0xFF, 0xFF, 0xFF, 0xFF] + Array("moofmoofmoof".utf8)] {
      guard case .fragmented(_, let length) = scan(recording.bytes + garbage) else {
        Issue.record("not recognised")
        continue
      }
      #expect(length == UInt64(recording.bytes.count))
    }
  }

  @Test func aFinishedMovieIsRecognised() throws {
    let recording = try record([[try SyntheticMedia.video(), try SyntheticMedia.audio()]])
    let movie = try #require(head(recording.tables)).readableBytesView + recording.bytes
    guard case .finished = scan(Array(movie)) else {
      Issue.record("not recognised")
      return
    }
  }

  @Test func whatIsNoRecordingIsUnknown() throws {
    for bytes in [[], [0, 0, 0, 8], Array("RIFF0000WAVEfmt ".utf8), [UInt8](repeating: 0, count: 4096)] {
      guard case .unknown = scan(bytes) else {
        Issue.record("taken for a recording")
        continue
      }
    }
  }

  @Test func changedBytesNeverTrap() throws {
    let recording = try record([[try SyntheticMedia.video(), try SyntheticMedia.audio()]])
    var state: UInt64 = 7
    func random(_ limit: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % limit
    }
    for _ in 0..<500 {
      var bytes = recording.bytes
      for _ in 0...random(6) { bytes[random(min(bytes.count, 3000))] = UInt8(random(256)) }
      if case .fragmented(let tables, let length) = scan(bytes) {
        #expect(length <= UInt64(bytes.count))
        _ = head(tables)
      }
    }
  }

  @Test func everySampleEntryIsReadAsItWasWritten() throws {
    let codecs: [Codec] = [
      Codec(try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264Interlaced))),
      Codec(try HEVC.Configuration(record: ByteBuffer(bytes: RecordFixture.hevcMain10))),
      Codec(try AV1.Configuration(record: ByteBuffer(bytes: RecordFixture.av1TenBit))),
      Codec(try AAC.Configuration(record: ByteBuffer(bytes: [0x11, 0x90]))),
      Codec(try Opus.Configuration(channels: 2, preSkip: 312)),
    ]
    for rotation in Rotation.allCases {
      let tracks = codecs.enumerated().map { index, codec in
        TrackDescription(
          id: TrackID(UInt32(index + 1)), codec: codec, timescale: 48_000, language: "deu",
          rotation: codec.kind == .video ? rotation : .none)
      }
      let bytes = InitSegment(version: 1, tracks: tracks).whole
      let read = try MovieReader.read(try #require(BoxReader(bytes).first { $0.type == "moov" }))
      #expect(read.tracks == tracks)
      #expect(read.kind == .fragmented)
    }
  }
}

/// What the environment asks of the tests.
enum TestRun {
  /// `make torture`: every case, however long it takes.
  static var isTorture: Bool { getenv("WEIR_TORTURE") != nil }
}
