import Base
@testable import FMP4
import Glibc
import NIOCore
import Publishing
@testable import Recording
@testable import RecordingFiles
import RecordingFormat
import RecordingSupport
import Storage
import Support
import Testing

/// Recordings that reserve space in front for their movie header: on tmpfs, which can neither insert room nor share blocks.
@Suite struct MoovReservationTests {
  private static let name = RecordingName(start: UTCText(RecordingHarness.start))
  private static let file = "cam/20261121T072410Z.mp4"
  private static let part = "cam/20261121T072410Z.part.mp4"
  /// Bytes that stand before the fragments: the least there can be.
  private static let room = MoovReservation.unit

  /// Files keep that much, as they can only become so large.
  private static var policy: RecordingPolicy {
    var policy = RecordingPolicy()
    policy.maximumBytes = 3_000_000
    return policy
  }

  private static func harness(
    _ folder: TemporaryFolder, archive: RecordingArchive? = nil, policy: RecordingPolicy = policy
  ) throws -> RecordingHarness {
    try RecordingHarness(folder, policy: policy, archive: archive)
  }

  /// A megabyte in eight seconds, so that the room is a small part of it.
  private static func begin(_ harness: RecordingHarness, seconds: Int = 12) async throws {
    try harness.startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()])
    try harness.send(
      SyntheticMedia.interleaved(seconds: seconds, offset: 1000, isSteady: true).map { sample in
        var sample = sample
        if sample.track == .video {
          sample.payload = ByteBuffer(repeating: sample.payload.readableBytesView[0], count: 4000)
        }
        return sample
      })
    try await harness.settle()
  }

  /// The bytes of a recording as a server that was killed leaves it.
  private static func left(in folder: TemporaryFolder, seconds: Int = 12) async throws -> [UInt8] {
    let harness = try harness(folder)
    try await begin(harness, seconds: seconds)
    let bytes = try harness.bytes(part)
    harness.recorder.cancel()
    try await harness.settle()
    return bytes
  }

  private static func lay(_ bytes: [UInt8], in folder: TemporaryFolder, as name: String = part) throws {
    unlink("\(folder.path)/\(file)")
    let descriptor = open("\(folder.path)/\(name)", O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    defer { close(descriptor) }
    try RecordingFile.write(ByteBuffer(bytes: bytes), to: descriptor, at: 0, path: name)
  }

  /// The file that was left; a child that another test starts may hold its lock for a moment.
  private static func reopen(_ folder: TemporaryFolder, _ calls: DiskCalls = .system) async throws -> RecordingFile {
    let place = try RecordingFolder.open("\(folder.path)/cam")
    for _ in 0..<500 {
      if case .opened(let file) = RecordingFile.reopen(in: place, name: name, calls: calls) { return file }
      try await Task.sleep(for: .milliseconds(10))
    }
    throw RecordingError("it cannot be opened")
  }

  private static func salvage(
    _ file: RecordingFile, _ effort: RecordingFile.Effort = .inPlace
  ) throws -> RecordingSalvage.Outcome {
    try RecordingSalvage(file: file, title: "cam", effort: effort).run()
  }

  private static func isFilled(_ outcome: RecordingSalvage.Outcome) -> Bool {
    if case .finished(.filled, _) = outcome { true } else { false }
  }

  /// `weir-fr1` and the room's length.
  private static let mark = Array("weir-fr1".utf8) + [0, 0, 0, 0, 0, 1, 0, 0]

  // MARK: Layout

  @Test func aFileIsFragmentedBehindItsRoomAndThenAMovieInIt() async throws {
    let harness = try Self.harness(try TemporaryFolder(.memory))
    try await Self.begin(harness)
    let growing = try harness.bytes(Self.part)
    let boxes = try #require(Box.parse(growing))
    #expect(boxes.prefix(7).map(\.type) == ["ftyp", "free", "moov", "free", "prft", "moof", "mdat"])
    #expect(boxes[2].offset == Self.room)
    #expect(growing[Self.room - 32..<Self.room] == (Self.mark + [UInt8](repeating: 0, count: 16))[...])
    let descriptor = open("\(harness.folder.path)/\(Self.part)", O_RDONLY)
    let hole = lseek(descriptor, 0, SEEK_HOLE)
    #expect(hole == 4096 && lseek(descriptor, hole, SEEK_DATA) == Self.room - 4096, "what is not written is a hole")
    close(descriptor)

    try await harness.end()
    #expect(harness.folder.files == [Self.file])
    #expect(harness.library.overview.counters.finishing["filled"]?.count == 1)
    #expect(try harness.sampleCounts(Self.file) == [360, 562])
    let movie = try harness.bytes(Self.file)
    let outer = try #require(Box.parse(movie))
    #expect(outer[3].offset == Self.room - 16, "its header ends the room")
    #expect(movie[Self.room - 32..<Self.room - 16] == Self.mark[...])
    // What was recorded stays where it was, to the last byte, and the last fragment came behind it.
    #expect(movie.holds(growing[Self.room...], at: Self.room))
    #expect(outer[3].payload.count == movie.count - Self.room)
    #expect(try #require(outer[3].payload.withUnsafeBytes { Box.parse(Array($0)) }).first?.type == "moov")
    guard case .completed(let told) = harness.recorder.state else {
      Issue.record("\(harness.recorder.state)")
      return
    }
    #expect(abs(told.seconds - 12) < 0.05)
    let stored = try #require(harness.events.all.last)
    #expect(stored.kind == .stored && stored.facts.bytes == UInt64(movie.count))
  }

  /// The tables point at the very bytes of each sample, which are its number.
  @Test func theTablesPointAtTheSamples() async throws {
    let harness = try Self.harness(try TemporaryFolder(.memory))
    try await Self.begin(harness)
    try await harness.end()
    let bytes = try harness.bytes(Self.file)
    let movie = try #require(Box.parse(bytes)?[1])
    for (track, size) in zip(movie.all("trak"), [4000, 20]) {
      let table = try #require(track.first("mdia/minf/stbl"))
      let chunks = try #require(table.first("stco"))
      let runs = try #require(table.first("stsc"))
      var number = 0
      for chunk in 0..<chunks.number(4) {
        let run = (0..<runs.number(4)).last { runs.number(8 + 12 * $0) <= chunk + 1 } ?? 0
        var offset = chunks.number(8 + 4 * chunk)
        for _ in 0..<runs.number(12 + 12 * run) {
          let sample = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: size)
          #expect(bytes.holds(sample[...], at: offset))
          offset += size
          number += 1
        }
      }
      #expect(number == (size == 4000 ? 360 : 562))
    }
  }

  /// Wherever the writing ends, the fragments before that are found, and become a movie in the room.
  @Test func everyPrefixCanBeFinished() async throws {
    let folder = try TemporaryFolder(.memory)
    let bytes = try await Self.left(in: folder, seconds: 2)
    let starts = try #require(Box.parse(bytes)).filter { $0.type == "moof" }.map(\.offset)
    let first = try #require(starts.first)
    var most = 0
    for length in stride(from: Self.room + 40, through: bytes.count, by: 4321) {
      try Self.lay(Array(bytes[..<length]), in: folder)
      let outcome = try Self.salvage(try await Self.reopen(folder), .atOnce)
      guard length > first + 4000 else { continue }
      if case .removed = outcome { continue }
      #expect(Self.isFilled(outcome), "\(length)")
      let frames = try RecordingHarness(folder).sampleCounts(Self.file)[0]
      #expect(frames >= most)
      most = frames
    }
    #expect(most >= 48)
  }

  /// Killed after one of the writes with which a file begins.
  @Test(arguments: [0, 1, 2])
  func aFileThatEndsWithinItsRoomHoldsNothing(_ pieces: Int) async throws {
    let folder = try TemporaryFolder(.memory)
    let root = try RecordingFolder.open(folder.path).folder(
      of: try #require(StreamName("cam")), ifAbsent: .make)
    let fileType = ByteBuffer(bytes: [0, 0, 0, 16] + Array("ftypiso6".utf8) + [0, 0, 0, 0])
    do {
      let file = try RecordingFile.create(in: root, name: Self.name, moovReservation: Self.room)
      for piece in try #require(file.room).beginning(fileType).prefix(pieces) {
        try RecordingFile.write(piece.bytes, to: file.descriptor, at: UInt64(piece.offset), path: file.path)
      }
    }
    let file = try await Self.reopen(folder)
    #expect(file.length == 0)
    guard case .removed = try Self.salvage(file) else {
      Issue.record("it is kept")
      return
    }
    #expect(folder.files == [])
  }

  @Test func onlyWhatLooksLikeItIsTakenForRoom() throws {
    let room = MoovReservation(length: Self.room)
    var bytes = [UInt8](repeating: 0, count: Self.room + 100)
    for piece in room.beginning(ByteBuffer(bytes: [0, 0, 0, 16] + Array("ftypiso6".utf8) + [0, 0, 0, 0])) {
      bytes.replaceSubrange(
        piece.offset..<piece.offset + piece.bytes.readableBytes, with: piece.bytes.readableBytesView)
    }
    func find(_ bytes: [UInt8]) -> MoovReservation? {
      MoovReservation.find(size: UInt64(bytes.count)) { offset, count in
        ByteBuffer(bytes: bytes.dropFirst(Int(offset)).prefix(count))
      }
    }
    #expect(find(bytes) == room)
    // Another type or size of the boxes, and another mark.
    for place in [3, 5, 18, 19, 21, Self.room - 32, Self.room - 17] {
      var other = bytes
      other[place] ^= 1
      #expect(find(other) == nil, "\(place)")
    }
    #expect(find([]) == nil && find(Array(bytes.prefix(20))) == nil)
  }

  // MARK: How much

  @Test(arguments: TemporaryFolder.Place.allCases)
  func roomIsKeptWhereTheFileSystemKnowsNoOtherWay(_ place: TemporaryFolder.Place) async throws {
    let folder = try TemporaryFolder(place)
    let file = try RecordingFile.create(
      in: try RecordingFolder.open(folder.path), name: Self.name, moovReservation: MoovReservation.usual)
    if place == .memory {
      #expect(file.room == MoovReservation(length: MoovReservation.usual))
    } else if try await folder.canInsert() {
      #expect(file.room == nil)
    }
    #expect(file.length == 0)
    var status = stat()
    #expect(fstat(file.descriptor, &status) == 0 && status.st_size == 0 && status.st_blocks == 0)
  }

  /// What it says to being asked decides, and nothing else.
  @Test(arguments: [(EINVAL, false), (0, false), (ENOSPC, false), (EOPNOTSUPP, true), (ENOSYS, true)])
  func theAnswerToAnInsertionDecides(_ code: CInt, _ isKept: Bool) throws {
    let folder = try TemporaryFolder(.memory)
    let calls = DiskCalls(allocate: { _, _, _, _ in code })
    let file = try RecordingFile.create(
      in: try RecordingFolder.open(folder.path), name: Self.name, moovReservation: Self.room, calls: calls)
    #expect((file.room != nil) == isKept)
  }

  @Test func aFileThatIsKnownToStaySmallKeepsLess() {
    func room(_ change: (inout RecordingPolicy) -> Void) -> Int {
      var policy = RecordingPolicy()
      change(&policy)
      return policy.moovReservation
    }
    #expect(room { _ in } == MoovReservation.usual)
    #expect(room { $0.split = .clock(3_600_000_000_000) } == 92 << 16)
    #expect(room { $0.split = .length(86_400_000_000_000) } == MoovReservation.usual)
    #expect(room { $0.maximumDuration = 60_000_000_000 } == 2 << 16)
    #expect(room { $0.maximumBytes = 32 << 20 } == 1 << 20)
    #expect(room { $0.maximumBytes = (2 << 20) - 1 } == 0)
    #expect(room { $0.maximumBytes = .max } == MoovReservation.usual)
  }

  /// Of which a copy is soon made, without the room.
  @Test func aShortRecordingIsCopied() async throws {
    let harness = try Self.harness(try TemporaryFolder(.memory))
    try await harness.record()
    #expect(harness.library.overview.counters.finishing["copied"]?.count == 1)
    let movie = try #require(Box.parse(try harness.bytes(Self.file)))
    #expect(movie.map(\.type) == ["ftyp", "moov", "free", "mdat"] && movie[3].offset < Self.room)
    #expect(try harness.sampleCounts(Self.file) == [60, 93])
    let check = try RecordingCheck(path: "\(harness.folder.path)/\(Self.file)", depth: .media) { _, _ in }
    #expect(check.isGood && check.text.contains("all checksums right"), "\(check.text)")
  }

  @Test func aRecordingWhoseHeadOutgrewTheRoomIsCopied() async throws {
    var policy = RecordingPolicy()
    policy.maximumDuration = 2_000_000_000
    let folder = try TemporaryFolder(.memory)
    let harness = try Self.harness(folder, policy: policy)
    try harness.startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()])
    try harness.send(SyntheticMedia.interleaved(seconds: 2))
    try await harness.settle()
    let left = try harness.bytes(Self.part)
    harness.recorder.cancel()
    try await harness.settle()
    try Self.lay(left, in: folder)
    let file = try await Self.reopen(folder)
    // As many samples as would take more.
    var tables = MovieTables(tracks: [try SyntheticMedia.audio()])
    let samples = (0..<20_000).map {
      RunSample(size: UInt32($0 % 7 + 1), duration: 1024, compositionOffset: 0, isSync: true)
    }
    let count = samples.reduce(0) { $0 + Int($1.size) }
    tables.append(
      [
        TrackRun(
          track: .audio, timescale: 48_000, baseDecodeTime: 0, samples: samples, byteCount: count, duration: 20_480_000)
      ],
      mediaOffset: 0)
    let metadata = MovieMetadata(title: "", date: "", tool: "", creation: .zero)
    let builder = try #require(MovieBuilder(tables, metadata: metadata))
    #expect(try file.finish(builder, effort: .atOnce) == .leftFragmented)
    #expect(try harness.bytes(Self.part) == left)
    #expect(try file.finish(builder, effort: .whatItTakes) == .copied)
    #expect(folder.files == [Self.file])
  }

  /// Eleven hours of what people record, as the constant promises.
  @Test func theUsualRoomHoldsTheHeadOfElevenHours() throws {
    let hours = 11
    var tables = MovieTables(tracks: [try SyntheticMedia.video(), try SyntheticMedia.audio()])
    var frames: Int64 = 0
    for part in 0..<Int64(hours) * 18_000 {
      var samples: [RunSample] = []
      for index in 0..<6 {
        samples.append(
          RunSample(
            size: UInt32(9000 + index), duration: 1000, compositionOffset: Int32(index % 3) * 1000,
            isSync: index == 0 && part % 10 == 0, isDisposable: index % 3 == 1))
      }
      let due = (part + 1) * 9600 / 1024
      let heard = Int(due - frames)
      let audioSamples = (0..<heard).map {
        RunSample(size: UInt32(340 + $0), duration: 1024, compositionOffset: 0, isSync: true)
      }
      let video = TrackRun(
        track: .video, timescale: 30_000, baseDecodeTime: part * 6000, samples: samples, byteCount: 72_000,
        duration: 6000)
      let audio = TrackRun(
        track: .audio, timescale: 48_000, baseDecodeTime: frames * 1024, samples: audioSamples,
        byteCount: heard * 340, duration: Int64(heard) * 1024)
      tables.append([video, audio], mediaOffset: UInt64(part) * 80_000)
      frames = due
    }
    let metadata = MovieMetadata(title: "cam", date: "", tool: "", creation: .zero)
    var builder = try #require(MovieBuilder(tables, metadata: metadata))
    // The index of as many segments of two seconds.
    builder.annex = ByteBuffer(
      repeating: 0, count: hours * 1800 * 80 + RecordingMetadata.maximumBytes(gaps: 10))
    let head = try #require(MoovReservation(length: MoovReservation.usual).movieHeader(builder, contentLength: 1 << 34))
    let megabytes = Double(head.byteCount) / Double(hours) / 1_000_000
    print("a movie's head, video with B-frames: \(megabytes) MB an hour")
    #expect(megabytes > 2 && megabytes < 3.05)
  }

  // MARK: Failures

  /// The disk fails at each call, once or for good: what is there is the fragmented file or the movie, with every byte of
  /// the media, and the next try makes the movie.
  @Test(arguments: FailingDisk.Extent.allCases, isLong ? [EIO, ENOSPC] : [ENOSPC])
  func aStepThatFailsLeavesWhatTheNextTryFinishes(_ extent: FailingDisk.Extent, _ error: CInt) async throws {
    let folder = try TemporaryFolder(.memory)
    let fragments = try await Self.left(in: folder)
    try Self.lay(fragments, in: folder)
    #expect(Self.isFilled(try Self.salvage(try await Self.reopen(folder))))
    let whole = try RecordingHarness(folder).sampleCounts(Self.file)
    var (place, failures, heads) = (1, 0, 0)
    while true {
      try Self.lay(fragments, in: folder)
      let disk = FailingDisk(failingAt: place, error, extent)
      do {
        let file = try await Self.reopen(folder, disk.calls)
        let outcome = try? Self.salvage(file)
        guard disk.hasFailed else { break }
        #expect(outcome == nil, "at \(place): \(disk.done)")
        let now = try RecordingHarness(folder).bytes(Self.part)
        #expect(now.count == fragments.count && now[Self.room...] == fragments[Self.room...])
        #expect(file.origin.shift == Self.room, "readers find it")
        let boxes = try #require(Box.parse(now), "at \(place)")
        if boxes[1].type == "moov" {
          #expect(boxes.map(\.type) == ["ftyp", "moov", "free", "mdat"])
          #expect(file.stage == .movie && extent == .forGood)
          heads += 1
        } else {
          #expect(boxes.prefix(3).map(\.type) == ["ftyp", "free", "moov"])
          #expect(boxes[2].offset == Self.room)
        }
        failures += 1
      }
      let outcome = try Self.salvage(try await Self.reopen(folder))
      if case .renamed = outcome {} else { #expect(Self.isFilled(outcome), "at \(place): \(outcome)") }
      #expect(try RecordingHarness(folder).sampleCounts(Self.file) == whole)
      #expect(try RecordingHarness(folder).bytes(Self.file)[Self.room...] == fragments[Self.room...])
      place += 1
    }
    // What was written last is made durable; the head's rest, the header of mdat, a sync, its first sector, a sync.
    #expect(failures == 6)
    #expect(heads == (extent == .forGood ? 1 : 0), "a movie whose first sector could neither be synced nor taken back")
  }

  /// The movie is whole in memory, and the disk perhaps never had its first sector.
  @Test func whatWentLastIsWrittenAgainBeforeAMovieGetsItsName() async throws {
    let folder = try TemporaryFolder(.memory)
    try Self.lay(try await Self.left(in: folder), in: folder)
    let disk = FailingDisk(failingAt: 6, EIO, .forGood)
    do {
      let file = try await Self.reopen(folder, disk.calls)
      #expect(throws: RecordingError.self) { try Self.salvage(file) }
      #expect(throws: RecordingError.self) { try file.append(ByteBuffer(string: "note")) }
    }
    let next = FailingDisk()
    guard case .renamed = try Self.salvage(try await Self.reopen(folder, next.calls)) else {
      Issue.record("\(next.done)")
      return
    }
    #expect(next.done.prefix(2) == ["write 0 \(MoovInsertion.sector)", "sync"])
  }

  /// A disk without room for a copy, and the room is there.
  @Test func aCopyThatHasNoRoomIsNotMade() async throws {
    let folder = try TemporaryFolder(.memory)
    try Self.lay(try await Self.left(in: folder, seconds: 2), in: folder)
    let full = try RecordingHarness(folder, keepFree: .max / 2)
    try await full.finishLeftovers()
    #expect(folder.files == [Self.file])
    #expect(full.library.overview.counters.finishing["filled"]?.count == 1)
    #expect(try full.sampleCounts(Self.file)[0] >= 48)
  }

  // MARK: Around it

  /// A reader of a recording finds the same bytes at the same offsets before, while and after it is finished, and so does
  /// who opens it later.
  @Test func readersNoticeNothing() async throws {
    let folder = try TemporaryFolder(.memory)
    let archive = RecordingArchive(folder: folder.path)
    let harness = try Self.harness(folder, archive: archive)
    try await Self.begin(harness)
    let growing = try #require(try archive.open(harness.stream, "20261121T072410Z"))
    func segments(_ source: ReplaySource) throws -> [ByteBuffer] {
      try source.withIndex { $0.segments.prefix(5).map { ($0.offset, Int($0.length)) } }.map { offset, length in
        try source.reader.read(at: offset, count: length)
      }
    }
    let before = try segments(growing)
    #expect(before.count == 5 && before.allSatisfy { $0.readableBytes > 100_000 })
    try await harness.end()
    #expect(try segments(growing) == before)
    let opened = try #require(try RecordingArchive(folder: folder.path).open(harness.stream, "20261121T072410Z"))
    #expect(try segments(opened) == before)
    #expect(opened.withIndex { $0.segments } == growing.withIndex { $0.segments })
    #expect(opened.withIndex { $0.versions.map(\.tracks) } == growing.withIndex { $0.versions.map(\.tracks) })
    let length = try #require(opened.withIndex { $0.segments.last }.map { $0.offset + UInt64($0.length) })
    #expect(try opened.reader.index(length: length).segments == growing.withIndex { $0.segments })
  }

  @Test func aCheckReadsBehindTheRoom() async throws {
    let folder = try TemporaryFolder(.memory)
    let fragments = try await Self.left(in: folder)
    let path = "\(folder.path)/film.mp4"
    for isFinished in [false, true] {
      try Self.lay(fragments, in: folder, as: "film.mp4")
      if isFinished {
        let result = try FragmentedFile.finalize(path) { _, _ in }
        #expect(result.text.contains("room filled"), "\(result.text)")
        #expect(try FragmentedFile.finalize(path) { _, _ in }.text.contains("already"))
      }
      let whole = try RecordingCheck(path: path, depth: .media) { _, _ in }
      #expect(whole.isGood && whole.text.contains("all checksums right"), "\(whole.text)")
      #expect(whole.text.contains(isFinished ? "a finished recording" : "fragmented, not finished"))
      let descriptor = open(path, O_WRONLY)
      try RecordingFile.write(
        ByteBuffer(repeating: 0xA5, count: 20), to: descriptor, at: UInt64(fragments.count - 20), path: path)
      close(descriptor)
      let check = try RecordingCheck(path: path, depth: .media) { _, _ in }
      #expect(!check.isGood && check.text.contains("1 of "), "\(check.text)")
    }
  }

  /// The catalogue is lost: what the files tell is the same.
  @Test func theFileTellsAllWithoutTheCatalogue() async throws {
    let folder = try TemporaryFolder(.memory)
    let harness = try Self.harness(folder)
    try await Self.begin(harness)
    try await harness.end()
    let facts = try #require(harness.events.all.last?.facts)
    let contents = try RecordingFolder.open("\(folder.path)/cam").contents(of: "20261121T072410Z.mp4")
    #expect(abs(contents.seconds - 12) < 0.05 && contents.codecs.count == 2)
    #expect(contents.metadata?.startedAt == facts.startedAt && contents.metadata?.isSalvaged == false)
  }
}

extension [UInt8] {
  /// Whether these bytes stand at this place. By the C library: tests are not optimised, and these are millions.
  fileprivate func holds(_ other: ArraySlice<UInt8>, at place: Int) -> Bool {
    guard place >= 0, other.count <= count - place else { return false }
    return withUnsafeBytes { mine in
      other.withUnsafeBytes { theirs in
        guard let left = mine.baseAddress, let right = theirs.baseAddress else { return theirs.isEmpty }
        return memcmp(left + place, right, theirs.count) == 0
      }
    }
  }
}
