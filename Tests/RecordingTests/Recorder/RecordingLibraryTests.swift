import FMP4
import Glibc
import NIOCore
import NIOPosix
import Publishing
@testable import Recording
@testable import RecordingFiles
import RecordingSupport
import Storage
import Support
import Testing

@Suite struct RecordingLibraryTests {
  private let loop = NIOSingletons.posixEventLoopGroup.any()

  @Test func finishedRecordingsAreListedNewestFirstWithTheirLength() async throws {
    let folder = try TemporaryFolder()
    let harness = try RecordingHarness(folder)
    try await harness.record()
    try harness.renew()
    try harness.startPublication([try SyntheticMedia.audio()], wall: RecordingHarness.start + 3_600_000_000_000)
    try harness.send((0..<47).map { SyntheticMedia.audio($0) })
    try await harness.end()
    for _ in 0..<2 {  // the second time from what is remembered
      let list = try await harness.library.list(on: loop).get()
      #expect(list.map(\.file) == ["20261121T082410Z.mp4", "20261121T072410Z.mp4"])
      #expect(list.map(\.stream.description) == ["cam", "cam"])
      #expect(abs(list[0].seconds - 47 * 1024.0 / 48_000) < 0.001)
      #expect(abs(list[1].seconds - 2) < 0.01)
      #expect(list[1].startedAt == RecordingHarness.start)
      #expect(list[1].bytes == (try harness.bytes("cam/20261121T072410Z.mp4")).count)
    }
  }

  @Test func onlyFinishedRecordingsAreOpened() async throws {
    let harness = try RecordingHarness(try TemporaryFolder())
    try await harness.record()
    try harness.renew()
    try harness.startPublication([try SyntheticMedia.audio()], wall: RecordingHarness.start + 60_000_000_000)
    try harness.send((0..<100).map { SyntheticMedia.audio($0) })
    try await harness.settle()
    #expect(symlink("/etc/passwd", "\(harness.folder.path)/cam/20200101T000000Z.mp4") == 0)
    #expect(mkdir("\(harness.folder.path)/cam/20200101T000001Z.mp4", 0o755) == 0)
    #expect(mkfifo("\(harness.folder.path)/cam/20200101T000002Z.mp4", 0o644) == 0)

    let opened = try await open(harness, "20261121T072410Z.mp4")
    #expect(opened?.range.length == (try harness.bytes("cam/20261121T072410Z.mp4")).count)
    #expect(opened?.entityTag.hasPrefix("\"") == true)
    for file in [
      "20261121T072510Z.mp4", "20261121T072510Z.part.mp4", "20200101T000000Z.mp4", "20200101T000001Z.mp4",
      "20200101T000002Z.mp4", "../cam/20261121T072410Z.mp4", "20261121T072410Z.mp4\0", "", ".", "20261121T072410Z",
    ] {
      #expect(try await open(harness, file) == nil, "\(file)")
    }
    try await harness.end()
  }

  private func open(_ harness: RecordingHarness, _ file: String) async throws -> OpenedRecording? {
    try await harness.library.open(stream: harness.stream, file: file, on: loop).get()
  }

  // MARK: What an earlier run left

  /// Leaves a recording as a server that was killed does, and gives its bytes.
  private func leave(
    in folder: TemporaryFolder, policy: RecordingPolicy = RecordingPolicy(),
    _ change: (inout [UInt8]) -> Void = { _ in }
  ) async throws -> [UInt8] {
    let harness = try RecordingHarness(folder, policy: policy)
    try harness.startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()])
    try harness.send(SyntheticMedia.interleaved(seconds: 2))
    try await harness.settle()
    var bytes = try harness.bytes("cam/20261121T072410Z.part.mp4")
    harness.recorder.cancel()
    try await harness.settle()
    change(&bytes)
    let descriptor = Glibc.open("\(folder.path)/cam/20261121T072410Z.part.mp4", O_WRONLY | O_CREAT, 0o644)
    #expect(write(descriptor, bytes, bytes.count) == bytes.count)
    close(descriptor)
    return bytes
  }

  @Test(arguments: TemporaryFolder.Place.allCases)
  func whatAnEarlierRunLeftIsFinishedAtTheStart(_ place: TemporaryFolder.Place) async throws {
    let folder = try TemporaryFolder(place)
    _ = try await leave(in: folder)
    let harness = try RecordingHarness(folder)
    try await harness.finishLeftovers()
    #expect(folder.files == ["cam/20261121T072410Z.mp4"])
    // The last, open fragment was not written yet when the server went.
    let counts = try harness.sampleCounts("cam/20261121T072410Z.mp4")
    #expect(counts[0] >= 48 && counts[0] <= 60)
    try await harness.finishLeftovers()
    #expect(folder.files == ["cam/20261121T072410Z.mp4"])
  }

  @Test func aTornTailIsCutOff() async throws {
    let folder = try TemporaryFolder()
    let torn = try await leave(in: folder) { $0.removeLast(100) }
    let harness = try RecordingHarness(folder)
    try await harness.finishLeftovers()
    let counts = try harness.sampleCounts("cam/20261121T072410Z.mp4")
    // Whole parts: two frames in the first, then six, and four in the last of the first segment.
    #expect(counts[0] > 0 && counts[0] % 6 == (counts[0] < 60 ? 2 : 0))
    let mdat = try #require(Box.parse(try harness.bytes("cam/20261121T072410Z.mp4"))?.last)
    #expect(mdat.payload.count < torn.count)
  }

  /// A crash between the insertion of the room and the head's first sector leaves zeros before the fragments; what
  /// was written of the rest may look like a beginning at first sight.
  @Test(arguments: [1, 2, 5])
  func roomThatWasInsertedAndNotFilledIsTakenBack(blocks: Int) async throws {
    let folder = try TemporaryFolder()
    try #require(
      try await folder.canInsert(), "the file system of /var/tmp cannot insert room, so nothing is shown here")
    _ = try await leave(in: folder) { bytes in
      var room = [UInt8](repeating: 0, count: 1024) + [UInt8](repeating: 0x55, count: 4096 * blocks - 1024)
      room.replaceSubrange(1536..<1548, with: [0, 0, 0, 8] + Array("ftyp0000".utf8))
      bytes = room + bytes
    }
    let harness = try RecordingHarness(folder)
    await harness.library.finishLeftovers()
    #expect(try harness.sampleCounts("cam/20261121T072410Z.mp4")[0] >= 48)
  }

  /// The power failed while room was being inserted: some of the file's pieces have moved, others not.
  @Test func aHoleBetweenWhatHasMovedAndWhatHasNotIsClosed() async throws {
    let folder = try TemporaryFolder()
    try #require(
      try await folder.canInsert(), "the file system of /var/tmp cannot insert room, so nothing is shown here")
    let bytes = try await leave(in: folder)
    #expect(bytes.count > 2 * 4096)
    let descriptor = Glibc.open("\(folder.path)/cam/20261121T072410Z.part.mp4", O_RDWR)
    #expect(fallocate(descriptor, FALLOC_FL_INSERT_RANGE, 4096, 4096 * 4) == 0)
    close(descriptor)
    let harness = try RecordingHarness(folder)
    await harness.library.finishLeftovers()
    #expect(try harness.sampleCounts("cam/20261121T072410Z.mp4")[0] >= 48)
    let mdat = try #require(Box.parse(try harness.bytes("cam/20261121T072410Z.mp4"))?.last)
    #expect(mdat.payload.count == bytes.count, "nothing of it was cut off")
  }

  @Test func aMovieThatOnlyLacksItsNameIsRenamed() async throws {
    let folder = try TemporaryFolder()
    let harness = try RecordingHarness(folder)
    try await harness.record()
    let path = "\(folder.path)/cam/20261121T072410Z"
    let before = try harness.bytes("cam/20261121T072410Z.mp4")
    #expect(rename("\(path).mp4", "\(path).part.mp4") == 0)
    await harness.library.finishLeftovers()
    // It says that it was salvaged, in one byte.
    let after = try harness.bytes("cam/20261121T072410Z.mp4")
    #expect(after.count == before.count && zip(after, before).filter { $0 != $1 }.map(\.0) == [1])
  }

  /// Ten hours have tables of 16 MiB and more. The server was killed when the head was in front and had not its name.
  @Test func aMovieWithLongTablesThatOnlyLacksItsNameIsRenamed() async throws {
    let folder = try TemporaryFolder()
    let harness = try RecordingHarness(folder)
    try await harness.record()
    var movie = try harness.bytes("cam/20261121T072410Z.mp4")
    let boxes = try #require(Box.parse(movie))
    let start = boxes[0].payload.count + 8
    let size = boxes[1].payload.count + 8
    let more = 17 << 20
    func number(_ value: Int) -> [UInt8] { [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) } }
    let tables = number(more) + Array("udta".utf8) + [UInt8](repeating: 0, count: more - 8)
    movie.insert(contentsOf: tables, at: start + size)
    movie.replaceSubrange(start..<start + 4, with: number(size + more))
    let path = "\(folder.path)/cam/20261121T072410Z"
    #expect(unlink("\(path).mp4") == 0)
    let file = Glibc.open("\(path).part.mp4", O_WRONLY | O_CREAT, 0o644)
    try RecordingFile.write(ByteBuffer(bytes: movie), to: file, at: 0, path: path)
    close(file)
    let next = try RecordingHarness(folder)
    await next.library.finishLeftovers()
    #expect(folder.files == ["cam/20261121T072410Z.mp4"])
    let list = try await next.library.list(on: loop).get()
    #expect(list.count == 1 && list[0].state == .completed && abs(list[0].seconds - 2) < 0.01)
  }

  /// A disk that does not answer.
  @Test func theStartWaitsForLeftoversNoLongerThanItsPatience() async throws {
    let folder = try TemporaryFolder()
    _ = try await leave(in: folder)
    let harness = try RecordingHarness(folder)
    let thaw = try harness.freezeFinishing()
    let start = ContinuousClock.now
    await harness.library.finishLeftovers(patience: .milliseconds(50))
    #expect(ContinuousClock.now - start < .seconds(5))
    #expect(folder.files == ["cam/20261121T072410Z.part.mp4"])
    thaw()
    for _ in 0..<3000 where folder.files != ["cam/20261121T072410Z.mp4"] {
      try await Task.sleep(for: .milliseconds(10))
    }
    #expect(try harness.sampleCounts("cam/20261121T072410Z.mp4")[0] >= 48)
  }

  /// The disk that is to stay free is not taken by a copy.
  @Test func aCopyWaitsForRoomAboveWhatIsToStayFree() async throws {
    let folder = try TemporaryFolder(.memory)
    let bytes = try await leave(in: folder, policy: .withoutRoomInFront)
    let full = try RecordingHarness(folder, keepFree: .max / 2)
    await full.library.finishLeftovers()
    for _ in 0..<3000 where full.library.isCopying { try await Task.sleep(for: .milliseconds(10)) }
    #expect(folder.files == ["cam/20261121T072410Z.part.mp4"])
    #expect(try full.bytes("cam/20261121T072410Z.part.mp4") == bytes)
    try await RecordingHarness(folder).finishLeftovers()
    #expect(folder.files == ["cam/20261121T072410Z.mp4"])
  }

  @Test func whatIsNoRecordingIsLeftAlone() async throws {
    let folder = try TemporaryFolder()
    _ = try await leave(in: folder) { $0 = Array("not a recording".utf8) }
    let harness = try RecordingHarness(folder)
    await harness.library.finishLeftovers()
    #expect(folder.files == ["cam/20261121T072410Z.part.mp4"])
  }

  @Test func aRecordingInProgressIsLeftAlone() async throws {
    let harness = try RecordingHarness(try TemporaryFolder())
    try harness.startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()])
    try harness.send(SyntheticMedia.interleaved(seconds: 2))
    try await harness.settle()
    await harness.library.finishLeftovers()
    #expect(harness.folder.files == ["cam/20261121T072410Z.part.mp4"])
    try await harness.end()
    #expect(harness.folder.files == ["cam/20261121T072410Z.mp4"])
  }

  /// A lock passes to every child between its fork and its exec, so one that is held for a moment tells nothing.
  @Test func aFileWhoseLockIsLetGoIsFinished() async throws {
    let folder = try TemporaryFolder()
    _ = try await leave(in: folder) { _ in }
    let descriptor = Glibc.open("\(folder.path)/cam/20261121T072410Z.part.mp4", O_RDONLY)
    try #require(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    // Not a task: those wait for each other when many tests run.
    let release = loop.scheduleTask(in: .milliseconds(200)) { _ = close(descriptor) }
    let harness = try RecordingHarness(folder)
    try await harness.finishLeftovers()
    try await release.futureResult.get()
    #expect(folder.files == ["cam/20261121T072410Z.mp4"])
  }

  // MARK: Shutting down

  @Test func atShutdownAFileIsFinishedInPlaceOrLeftWhole() async throws {
    for place in TemporaryFolder.Place.allCases {
      let folder = try TemporaryFolder(place)
      let harness = try RecordingHarness(folder)
      try harness.startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()])
      try harness.send(SyntheticMedia.interleaved(seconds: 2))
      try await harness.end(.shutdown)
      await harness.library.shutDown()
      guard case .completed = harness.recorder.state else {
        Issue.record("\(harness.recorder.state)")
        return
      }
      // In the room that was kept in front, though most of it is left over.
      let isAtOnce = try await folder.canInsert() || place == .memory
      #expect(isAtOnce == (folder.files == ["cam/20261121T072410Z.mp4"]))
      if !isAtOnce { try await RecordingHarness(folder).finishLeftovers() }
      #expect(try harness.sampleCounts("cam/20261121T072410Z.mp4") == [60, 93])
    }
  }

  @Test func atShutdownAFileThatTakesACopyIsLeftWhole() async throws {
    let folder = try TemporaryFolder(.memory)
    let harness = try RecordingHarness(folder, policy: .withoutRoomInFront)
    try await harness.record(.shutdown)
    await harness.library.shutDown()
    #expect(folder.files == ["cam/20261121T072410Z.part.mp4"])
    try await RecordingHarness(folder).finishLeftovers()
    #expect(try harness.sampleCounts("cam/20261121T072410Z.mp4") == [60, 93])
  }
}
