import Base
import FMP4
import Glibc
import NIOCore
import Publishing
@testable import Recording
@testable import RecordingFiles
import RecordingFormat
import RecordingSupport
import Support
import Testing

@Suite struct RecordingFileTests {
  private static let name = RecordingName(start: UTCText(RecordingHarness.start))

  private static func size(_ file: RecordingFile) -> Int {
    var status = stat()
    fstat(file.descriptor, &status)
    return Int(status.st_size)
  }

  /// Offsets are not those of the fragments any more: what would be appended would overwrite media, and what is cut off
  /// behind `length` is media.
  @Test func aFileWithItsHeadInFrontTakesNothingMoreAndLosesNothing() throws {
    let folder = try TemporaryFolder()
    let file = try RecordingFile.create(in: try RecordingFolder.open(folder.path), name: Self.name)
    try file.reserve(media: 1 << 20, head: 4096)
    try file.append(ByteBuffer(repeating: 0x55, count: 10_000))
    try file.sync()
    // As the insertion of room does.
    try RecordingFile.write(
      ByteBuffer(repeating: 0x55, count: 4096), to: file.descriptor, at: file.length, path: file.path)
    file.noteHead()
    #expect(throws: RecordingError.self) { try file.append(ByteBuffer(string: "note")) }
    #expect(throws: RecordingError.self) { try file.truncate(to: 5000) }
    #expect(throws: RecordingError.self) { try file.reserve(media: 8 << 20, head: 4096) }
    #expect(throws: RecordingError.self) { try file.takeBackUnfinishedHead() }
    file.releaseReserve()
    #expect(Self.size(file) == 14_096)
    let bytes = try file.read(at: 0, count: 20_000)
    #expect(bytes.readableBytesView.allSatisfy { $0 == 0x55 })
  }

  /// What makes the movie fails when the head is in front already: nothing is written behind it, and nothing cut off.
  @Test func aRescueOfAFileWithItsHeadInFrontLeavesItAsItIs() throws {
    let folder = try TemporaryFolder()
    let file = try RecordingFile.create(in: try RecordingFolder.open(folder.path), name: Self.name)
    let initSegment = InitSegment(version: 1, tracks: [try SyntheticMedia.audio()])
    var recording = RecordingInProgress(
      file: file, stream: try #require(StreamName("cam")), initSegment: initSegment, startedAt: 0, replay: nil, now: 0)
    try recording.begin()
    try recording.sync(0)
    file.releaseReserve()
    file.noteHead()
    let size = Self.size(file)
    #expect(throws: RecordingError.self) { try recording.rescue(failure: "the disk failed") { _, _ in } }
    #expect(Self.size(file) == size)
  }

  /// A stream that is recorded again within the segment in which the last recording began has the same start.
  @Test(arguments: [name.finished, name.unfinished])
  func aRecordingThatWasDeletedKeepsItsNameForAsLongAsItCanBeRestored(file: String) throws {
    let folder = try TemporaryFolder()
    let root = try RecordingFolder.open(folder.path)
    let deleted = try root.folder(named: RecordingFolder.deletedName, ifAbsent: .make)
    close(openat(deleted.descriptor, file, O_CREAT | O_WRONLY, 0o644))
    #expect(try RecordingFile.create(in: root, name: Self.name).name == Self.name.numbered(2))
    try deleted.move(file, to: root)
    root.remove(file)
    #expect(try RecordingFile.create(in: root, name: Self.name).name == Self.name)
  }

  @Test func aFileIsHeldFromBeforeItIsThereUntilItIsLetGo() throws {
    let folder = try TemporaryFolder()
    let root = try RecordingFolder.open(folder.path)
    var file: RecordingFile? = try RecordingFile.create(in: root, name: Self.name)
    #expect(file?.length == 0 && UnfinishedRecordingFiles.isHeld(Self.name.unfinished, in: root))
    #expect(!UnfinishedRecordingFiles.isHeld(Self.name.numbered(2).unfinished, in: root))
    file = nil
    #expect(!UnfinishedRecordingFiles.isHeld(Self.name.unfinished, in: root))
  }

  // MARK: Files of any name

  /// A fragmented file of another name, as another program leaves it.
  private static func fragmented(in folder: TemporaryFolder) async throws -> (path: String, bytes: [UInt8]) {
    let harness = try RecordingHarness(folder)
    try harness.startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()])
    try harness.send(SyntheticMedia.interleaved(seconds: 2))
    try await harness.settle()
    let bytes = try harness.bytes("cam/20261121T072410Z.part.mp4")
    harness.recorder.cancel()
    try await harness.settle()
    let path = "\(folder.path)/film.mp4"
    try write(bytes, to: path)
    return (path, bytes)
  }

  private static func write(_ bytes: [UInt8], to path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    defer { close(descriptor) }
    try RecordingFile.write(ByteBuffer(bytes: bytes), to: descriptor, at: 0, path: path)
  }

  private static func read(_ path: String) throws -> [UInt8] {
    let descriptor = open(path, O_RDONLY)
    defer { close(descriptor) }
    return Array(try RecordingFile.read(from: descriptor, at: 0, count: 1 << 24, path: path).readableBytesView)
  }

  /// Children that other tests start hold, between fork and exec, what was just closed here: one that is held for a moment
  /// tells nothing.
  private static func finalize(_ path: String) async throws {
    for _ in 0..<500 {
      if (try? FragmentedFile.finalize(path, progress: { _, _ in })) != nil { return }
      try await Task.sleep(for: .milliseconds(10))
    }
    _ = try FragmentedFile.finalize(path) { _, _ in }
  }

  @Test func aFileThatIsOpenElsewhereIsNotFinished() async throws {
    let folder = try TemporaryFolder()
    let (path, bytes) = try await Self.fragmented(in: folder)
    let writer = open(path, O_WRONLY | O_APPEND)
    let error = #expect(throws: RecordingError.self) { try FragmentedFile.finalize(path) { _, _ in } }
    #expect(error?.description.contains("open in another program") == true)
    #expect(try Self.read(path) == bytes)
    close(writer)
    try await Self.finalize(path)
    #expect(Box.parse(try Self.read(path))?.map(\.type) == ["ftyp", "moov", "free", "mdat"])
  }

  @Test func aCheckComparesChecksumsUnlessHeadsAreEnough() async throws {
    let folder = try TemporaryFolder()
    let (path, fragments) = try await Self.fragmented(in: folder)
    let whole = try RecordingCheck(path: path, depth: .media) { _, _ in }
    #expect(whole.isGood && whole.text.contains("all checksums right"))
    try await Self.finalize(path)
    let movie = try Self.read(path)
    for original in [fragments, movie] {
      try Self.write(original, to: path)
      #expect(try RecordingCheck(path: path, depth: .media) { _, _ in }.isGood)
      // The last bytes are media; so is what lies before the last fragment's seal.
      var damaged = original
      for index in damaged.count - 20..<damaged.count { damaged[index] ^= 0xFF }
      try Self.write(damaged, to: path)
      let check = try RecordingCheck(path: path, depth: .media) { _, _ in }
      #expect(!check.isGood && check.text.contains("1 of "), "\(check.text)")
      #expect(try RecordingCheck(path: path, depth: .heads) { _, _ in }.isGood)
    }
  }

  @Test func everyFragmentIsComparedAlsoBehindOneThatDiffers() async throws {
    let folder = try TemporaryFolder()
    let (path, bytes) = try await Self.fragmented(in: folder)
    let boxes = try #require(Box.parse(bytes))
    var (position, changed) = (0, 0)
    var damaged = bytes
    for box in boxes {
      position += box.payload.count + 8
      guard box.type == "mdat", box.payload.count > 0, changed < 2 else { continue }
      damaged[position - 1] ^= 1
      changed += 1
    }
    #expect(changed == 2)
    try Self.write(damaged, to: path)
    let check = try RecordingCheck(path: path, depth: .media) { _, _ in }
    #expect(check.text.contains("damaged: 2 of "), "\(check.text)")
  }

  /// One pass finds what a walk over the heads finds.
  @Test func theIndexIsBuiltWhileTheHeadsAreRead() async throws {
    let folder = try TemporaryFolder()
    let (path, bytes) = try await Self.fragmented(in: folder)
    let file = try LockedFile(path, .read)
    for seals in [RecordingScan.Seals.ignored, .heeded(.uncertain), .heeded(.all)] {
      let scan = try RecordingScan(file.descriptor, path: path, size: file.size, seals: seals) { _ in }
      #expect(scan.index.segments.count >= 1)
      #expect(scan.index.stored == (try file.reader.index(length: UInt64(bytes.count))).stored)
    }
  }
}
