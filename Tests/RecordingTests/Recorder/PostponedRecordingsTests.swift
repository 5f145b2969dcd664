import Base
import Publishing
@testable import Recording
@testable import RecordingFiles
import Support
import Testing

/// What the disk did not let be finished is kept for another try, in bounds.
@Suite struct PostponedRecordingsTests {
  private let home: TemporaryFolder

  init() throws { home = try TemporaryFolder() }

  private func recording(_ stream: Int, _ number: Int = 0) throws -> UnfinishedRecording {
    let name = try #require(StreamName("cam\(stream)"))
    return UnfinishedRecording(
      folder: try RecordingFolder.open(home.path).folder(of: name, ifAbsent: .make),
      name: try #require(RecordingName(base: "20261121T0724\(10 + number)Z")), stream: name)
  }

  private let later: MonotonicTime = 3_600_000_000_000

  @Test func foldersOfSoManyStreamsAreKeptOpenAndNoMore() throws {
    var postponed = PostponedRecordings()
    for stream in 0..<40 { postponed.add(try recording(stream), at: 0) }
    #expect(Set(postponed.due(at: later).map(\.stream.description)) == Set((0..<32).map { "cam\($0)" }))
  }

  @Test func aFolderThatIsOpenTakesMoreAndAFreePlaceIsTaken() throws {
    var postponed = PostponedRecordings()
    for stream in 0..<32 { postponed.add(try recording(stream), at: 0) }
    postponed.add(try recording(5, 1), at: 0)
    postponed.remove(try recording(0))
    postponed.add(try recording(33), at: 0)
    postponed.add(try recording(34), at: 0)
    let due = postponed.due(at: later)
    #expect(due.count == 33)
    #expect(Set(due.map { ObjectIdentifier($0.folder) }).count == 32)
    #expect(due.contains { $0.stream.description == "cam33" } && !due.contains { $0.stream.description == "cam34" })
  }

  @Test func eachTryThatFailsDoublesThePauseUpToTenMinutes() throws {
    var postponed = PostponedRecordings()
    let one = try recording(1)
    postponed.add(one, at: 0)
    var now: MonotonicTime = 0
    var pauses: [Int64] = []
    for _ in 0..<8 {
      var pause: Int64 = 0
      while postponed.due(at: now + pause).isEmpty { pause += 1_000_000_000 }
      now += pause
      pauses.append(pause / 1_000_000_000)
      postponed.add(one, at: now)
    }
    #expect(pauses == [10, 20, 40, 80, 160, 320, 600, 600])
  }
}
