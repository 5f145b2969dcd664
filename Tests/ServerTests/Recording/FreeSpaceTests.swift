import Ingest
import Logging
import Testing

@testable import Server

/// What is said of a disk that is too full.
@Suite struct FreeSpaceTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func complaint(keepFree: (Int64) -> Int64, isResuming: Bool) throws -> String? {
    let root = try RecordingFolder.open(folder.path)
    let free = try #require(root.freeBytes)
    let settings = RecordingSettings(
      folder: folder.path, keepFree: keepFree(free), clock: .system(),
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    do {
      try settings.checkFreeSpace(root, isResuming: isResuming)
      return nil
    } catch {
      return error.description
    }
  }

  @Test func belowTheLimitItSaysSo() throws {
    let said = try #require(try complaint(keepFree: { $0 &+ 1_000_000_000 }, isResuming: false))
    #expect(said.contains("MB free, below --keep-free ("))
    #expect(try complaint(keepFree: { $0 &- 8_000_000 }, isResuming: false) == nil)
  }

  @Test func aboveTheLimitItSaysWhatIsMissingBeforeItGoesOn() throws {
    let said = try #require(try complaint(keepFree: { $0 &- 8_000_000 }, isResuming: true))
    #expect(!said.contains("below"))
    #expect(said.contains("recording resumes at ") && said.contains("17 MB for writing"))
    #expect(try complaint(keepFree: { $0 &- 100_000_000 }, isResuming: true) == nil)
  }
}
