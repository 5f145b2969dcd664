import Base
import FMP4
import Logging
@testable import Recording
@testable import RecordingFiles
import RecordingSupport
import Storage
import Support
import Testing

/// What is said of a disk that is too full.
@Suite struct FreeSpaceTests {
  private static let free: Int64 = 5_000_000_000

  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func complaint(keepFree: (Int64) -> Int64, isResuming: Bool) throws -> String? {
    let root = try RecordingFolder.open(folder.path)
    let settings = RecordingSettings(
      folder: folder.path, keepFree: keepFree(Self.free), clock: .system(),
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, calls: DiskCalls(freeBytes: { _ in Self.free }))
    do {
      try settings.checkFreeSpace(root, isResuming: isResuming)
      return nil
    } catch {
      return error.description
    }
  }

  @Test func belowTheLimitItSaysSo() throws {
    let said = try #require(try complaint(keepFree: { $0 + 1 }, isResuming: false))
    #expect(said.contains("has 5000 MB free, below --keep-free (5000 MB)"))
    #expect(try complaint(keepFree: { $0 }, isResuming: false) == nil)
  }

  @Test func aboveTheLimitItSaysWhatIsMissingBeforeItGoesOn() throws {
    let said = try #require(try complaint(keepFree: { $0 - (16 << 20) + 1 }, isResuming: true))
    #expect(!said.contains("below"))
    #expect(said.contains("recording resumes at ") && said.contains("17 MB for writing"))
    #expect(try complaint(keepFree: { $0 - (16 << 20) }, isResuming: true) == nil)
  }

  /// It is in no file, so the log tells it of none.
  @Test func whatIsLostWhileThereIsNoRoomIsOfNoFile() async throws {
    let (disk, lines) = (FillingDisk(), LoggedLines())
    let harness = try RecordingHarness(folder, keepFree: disk.keepFree, calls: disk.calls, logger: lines.logger)
    func send(_ frames: Range<Int>) async throws {
      try harness.send(frames.map { SyntheticMedia.frame($0, group: 30) })
      try await harness.settle()
    }
    try harness.startPublication([try SyntheticMedia.video()])
    try await send(0..<60)
    disk.fill()
    harness.lose(.video)
    try await send(60..<90)
    disk.empty()
    try await Task.sleep(for: .nanoseconds(RecordingSettings.retryInterval + 50_000_000))
    try await send(90..<150)
    try await harness.end()
    let ends = lines.all.filter { $0.contains("recording stops: the stream ended") }
    #expect(ends.count == 1 && !ends.contains { $0.contains("could not be used") }, "\(lines.all)")
  }

  /// Other programs write to this disk meanwhile, so only bounds are certain.
  @Test func withoutATestsOwnReadingItIsTheFileSystems() throws {
    let root = try RecordingFolder.open(folder.path)
    let free = try #require(DiskCalls.system.freeBytes(root))
    let total = try #require(root.space?.total)
    #expect(free > 0 && free <= total)
  }
}
