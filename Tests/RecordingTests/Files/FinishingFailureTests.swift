import Base
import Glibc
import NIOCore
import NIOPosix
import Publishing
@testable import Recording
@testable import RecordingFiles
import RecordingFormat
import RecordingSupport
import Storage
import Support
import Synchronization
import Testing

/// What becomes of a recording when a step of its finishing fails, or the process ends there.
@Suite struct FinishingFailureTests {
  private static let name = RecordingName(start: UTCText(RecordingHarness.start))

  /// A folder with a recording as a server that was killed leaves it, and its bytes.
  private static func left() async throws -> (folder: TemporaryFolder, bytes: [UInt8]) {
    let folder = try TemporaryFolder()
    let harness = try RecordingHarness(folder)
    try harness.startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()])
    try harness.send(SyntheticMedia.interleaved(seconds: 4))
    try await harness.settle()
    let bytes = try harness.bytes("cam/20261121T072410Z.part.mp4")
    harness.recorder.cancel()
    try await harness.settle()
    return (folder, bytes)
  }

  private static func lay(_ bytes: [UInt8], in folder: TemporaryFolder) throws {
    let path = "\(folder.path)/cam/20261121T072410Z"
    unlink("\(path).mp4")
    let file = open("\(path).part.mp4", O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    defer { close(file) }
    try RecordingFile.write(ByteBuffer(bytes: bytes), to: file, at: 0, path: path)
  }

  private static func read(_ file: RecordingFile) throws -> [UInt8] {
    Array(try file.read(at: 0, count: 1 << 24).readableBytesView)
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

  private static func salvage(_ file: RecordingFile) throws -> RecordingSalvage.Outcome {
    try RecordingSalvage(file: file, title: "cam", effort: .inPlace).run()
  }

  /// What a system of no faults makes of it.
  private static func movie(of folder: TemporaryFolder) async throws -> (bytes: [UInt8], samples: [Int]) {
    _ = try salvage(try await reopen(folder))
    let harness = try RecordingHarness(folder)
    let (file, count) = ("cam/20261121T072410Z.mp4", folder.files.count)
    guard count == 1 else { throw RecordingError("\(folder.files)") }
    return (try harness.bytes(file), try harness.sampleCounts(file))
  }

  @Test(arguments: FailingDisk.Extent.allCases, [EIO, ENOSPC])
  func aStepThatFailsLeavesWhatTheNextTryFinishes(_ extent: FailingDisk.Extent, _ error: CInt) async throws {
    let (folder, fragments) = try await Self.left()
    try #require(
      try await folder.canInsert(), "the file system of /var/tmp cannot insert room, so nothing is shown here")
    try Self.lay(fragments, in: folder)
    let whole = try await Self.movie(of: folder)
    var (place, failures, rooms) = (1, 0, 0)
    while true {
      try Self.lay(fragments, in: folder)
      let disk = FailingDisk(failingAt: place, error, extent)
      do {
        let file = try await Self.reopen(folder, disk.calls)
        let outcome = try? Self.salvage(file)
        guard disk.hasFailed else { break }
        #expect(outcome == nil, "at \(place): \(disk.done)")
        let now = try Self.read(file)
        let room = now.count - fragments.count
        // All of the media is there, and readers find it.
        #expect(now.suffix(fragments.count) == fragments[...], "at \(place): \(disk.done)")
        #expect(file.origin.shift == room)
        if room > 0 {
          rooms += 1
          #expect(file.stage == .movie)
          #expect(throws: RecordingError.self) { try file.append(ByteBuffer(string: "note")) }
        }
        #expect(extent == .forGood || room == 0, "the room is given back")
        failures += 1
      }
      let made = try await Self.movie(of: folder)
      #expect(made.samples == whole.samples)
      #expect(made.bytes.suffix(fragments.count) == fragments[...])
      place += 1
    }
    // Room, the head's rest, a sync, its first sector, a sync; before them what was written last is made durable.
    #expect(failures >= 6)
    #expect(extent == .once || rooms == 4)
  }

  /// The movie is whole in memory, and the disk never had its first sector.
  @Test func whatWentLastIsWrittenAgainBeforeAMovieGetsItsName() async throws {
    let (folder, fragments) = try await Self.left()
    try #require(
      try await folder.canInsert(), "the file system of /var/tmp cannot insert room, so nothing is shown here")
    try Self.lay(fragments, in: folder)
    let trial = FailingDisk()
    _ = try Self.salvage(try await Self.reopen(folder, trial.calls))
    try Self.lay(fragments, in: folder)
    // The last sync, and what would take the room out.
    let disk = FailingDisk(failingAt: trial.done.count, EIO, .forGood)
    #expect(throws: RecordingError.self) { try Self.salvage(try Self.now(folder, disk.calls)) }
    let next = FailingDisk()
    guard case .renamed = try Self.salvage(try await Self.reopen(folder, next.calls)) else {
      Issue.record("\(next.done)")
      return
    }
    #expect(next.done.prefix(2) == ["write 0 \(MoovInsertion.sector)", "sync"])
    // Nor is it trusted when that fails.
    try Self.lay(fragments, in: folder)
    #expect(throws: RecordingError.self) { try Self.salvage(try Self.now(folder, disk.calls)) }
  }

  private static func now(_ folder: TemporaryFolder, _ calls: DiskCalls) throws -> RecordingFile {
    let place = try RecordingFolder.open("\(folder.path)/cam")
    guard case .opened(let file) = RecordingFile.reopen(in: place, name: name, calls: calls) else {
      throw RecordingError("it cannot be opened")
    }
    return file
  }

  /// ext4 and XFS move a file's pieces one after another: an error in the midst of it leaves a longer file with a hole.
  @Test(arguments: [EIO, ENOMEM])
  func aFileThatIsMovedByHalfIsNotTakenForUnchanged(_ error: CInt) async throws {
    let (folder, fragments) = try await Self.left()
    try #require(
      try await folder.canInsert(), "the file system of /var/tmp cannot insert room, so nothing is shown here")
    try Self.lay(fragments, in: folder)
    let whole = try await Self.movie(of: folder)
    try Self.lay(fragments, in: folder)
    var calls = DiskCalls.system
    let system = calls.allocate
    calls.allocate = { file, mode, offset, length in
      guard mode == FALLOC_FL_INSERT_RANGE else { return error }
      _ = system(file, mode, 4096, length)
      return error
    }
    do {
      let file = try await Self.reopen(folder, calls)
      #expect(throws: RecordingError.self) { try Self.salvage(file) }
      #expect(throws: RecordingError.self) { try file.append(ByteBuffer(string: "note")) }
      #expect(throws: RecordingError.self) { try file.truncate(to: UInt64(fragments.count)) }
    }
    let made = try await Self.movie(of: folder)
    #expect(made.samples == whole.samples)
    #expect(made.bytes.suffix(fragments.count) == fragments[...])
  }

  /// Room kept for the next seconds' media belongs to nothing after the server was killed.
  @Test func roomThatWasKeptIsGivenBackWhenTheFileIsFinished() async throws {
    let (folder, fragments) = try await Self.left()
    try Self.lay(fragments, in: folder)
    let path = "\(folder.path)/cam/20261121T072410Z"
    let descriptor = open("\(path).part.mp4", O_RDWR)
    try #require(
      fallocate(descriptor, FALLOC_FL_KEEP_SIZE, off_t(fragments.count), 8 << 20) == 0, "no room can be kept here")
    fsync(descriptor)
    close(descriptor)
    var status = stat()
    #expect(stat("\(path).part.mp4", &status) == 0 && Int(status.st_blocks) * 512 > 8 << 20)
    _ = try Self.salvage(try await Self.reopen(folder))
    #expect(stat("\(path).mp4", &status) == 0)
    #expect(Int(status.st_blocks) * 512 <= Int(status.st_size) + (1 << 20))
  }

  // MARK: What is told

  /// Nothing but the insertion fails, so often; when it no longer does, the recording is a whole one.
  private final class Insertions: Sendable {
    let left: Atomic<Int>
    init(failing: Int) { left = Atomic(failing) }

    var calls: DiskCalls {
      var calls = DiskCalls.system
      let system = calls.allocate
      calls.allocate = { file, mode, offset, length in
        // An empty file only asks whether there is such a thing.
        guard mode == FALLOC_FL_INSERT_RANGE, lseek(file, 0, SEEK_END) > 0,
          self.left.subtract(1, ordering: .relaxed).oldValue > 0
        else {
          return system(file, mode, offset, length)
        }
        return ENOSPC
      }
      return calls
    }
  }

  private func entry(_ harness: RecordingHarness) async throws -> RecordingEntry {
    let loop = NIOSingletons.posixEventLoopGroup.any()
    let page = try await harness.library.catalogue.list(CatalogueQuery(), on: loop).get()
    return try #require(page.entries.first)
  }

  @Test func aFinishingThatASecondTryDoesIsNoFailure() async throws {
    let harness = try RecordingHarness(try TemporaryFolder(), calls: Insertions(failing: 1).calls)
    try #require(
      try await harness.folder.canInsert(), "the file system of /var/tmp cannot insert room, so nothing is shown here")
    try await harness.record()
    #expect(harness.events.steps == [.started, .stopped(.streamEnded), .stored])
    guard case .completed = harness.recorder.state else {
      Issue.record("\(harness.recorder.state)")
      return
    }
    let entry = try await entry(harness)
    #expect(entry.state == .completed && entry.reason == nil && !entry.isSalvaged)
    #expect(try harness.sampleCounts("cam/20261121T072410Z.mp4") == [60, 93])
    #expect(try RecordingFolder.open("\(harness.folder.path)/cam").metadata(of: entry.file)?.failure == nil)
    // Replay finds all of it.
    let file = try LockedFile("\(harness.folder.path)/cam/\(entry.file)", .read)
    let content = try #require(try file.reader.outline(size: file.size)).content
    let media = file.reader(from: content.lowerBound)
    let stream = try #require(StreamName("cam"))
    let source = try #require(try RecordingArchive.load(file.shared, size: file.size, stream: stream, name: "x"))
    let walked = try media.index(length: content.upperBound - content.lowerBound)
    #expect(source.withIndex { $0.segments == walked.segments })
  }

  /// The disk lets it be finished at a later try: until then the catalogue says that it failed, and why.
  @Test func aFinishingThatALaterTryDoesEndsAsACompleteRecording() async throws {
    let harness = try RecordingHarness(try TemporaryFolder(), calls: Insertions(failing: 2).calls)
    try #require(
      try await harness.folder.canInsert(), "the file system of /var/tmp cannot insert room, so nothing is shown here")
    try await harness.record()
    guard case .failed(.some, let reason) = harness.recorder.state else {
      Issue.record("\(harness.recorder.state)")
      return
    }
    let failed = try await entry(harness)
    #expect(failed.state == .failed && failed.reason?.hasSuffix(reason) == true && !failed.isPlayable)
    #expect(failed.reason?.hasPrefix(CatalogueReading.unfinished) == true)
    for _ in 0..<1500 where harness.events.steps.last != .stored {
      try await Task.sleep(for: .milliseconds(10))
      harness.library.tend()
    }
    #expect(harness.events.steps == [.started, .stopped(.streamEnded), .failed(reason: reason), .stored])
    try await harness.settle()
    let stored = try await entry(harness)
    #expect(stored.state == .completed && stored.reason == nil && !stored.isSalvaged && stored.isPlayable)
    #expect(stored.seconds == failed.seconds || abs(stored.seconds - failed.seconds) < 0.05)
    guard case .completed = harness.recorder.state else {
      Issue.record("\(harness.recorder.state)")
      return
    }
    #expect(try harness.sampleCounts("cam/20261121T072410Z.mp4") == [60, 93])
  }

  /// The server ended before the later try.
  @Test func aRecordingThatOnlyLackedItsFinishingIsCompleteAfterTheNextStart() async throws {
    let folder = try TemporaryFolder()
    try #require(
      try await folder.canInsert(), "the file system of /var/tmp cannot insert room, so nothing is shown here")
    let first = try RecordingHarness(folder, calls: Insertions(failing: 2).calls)
    try await first.record()
    #expect(try await entry(first).state == .failed)
    await first.library.shutDown()
    let second = try RecordingHarness(folder)
    try await second.finishLeftovers()
    try await second.settle()
    let entry = try await entry(second)
    #expect(entry.state == .completed && entry.reason == nil && entry.isSalvaged && entry.isPlayable)
  }
}
