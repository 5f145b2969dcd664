import Base
import Glibc
import NIOCore
import NIOPosix
import Publishing
import Recording
@testable import RecordingFiles
import RecordingSupport
import Support
import Testing

@Suite struct RecordingNamingTests {
  private static let start = UTCText(RecordingHarness.start)

  private func stem(_ pattern: String, _ stream: String = "cam") throws -> String? {
    try RecordingNaming(parsing: pattern).name(stream: try #require(StreamName(stream)), start: Self.start)?.stem
  }

  @Test(arguments: [
    ("{stream}/{time}", "20261121T072410Z"),
    ("{stream}/{stream}_{year}-{month}-{day}_{hour}-{minute}-{second}", "cam_2026-11-21_07-24-10"),
    ("{stream}/{stream}-{time}_raw", "cam-20261121T072410Z_raw"),
    ("{stream}/{year}{month}{day}{hour}{minute}{second}", "20261121072410"),
    ("{stream}/v2.{year}.{month}.{day}T{hour}{minute}{second}Z", "v2.2026.11.21T072410Z"),
    ("{stream}/{year}{month}{day}{hour}{minute}-{second}", "202611210724-10"),
  ])
  func aPatternNamesARecordingWhoseTimeIsReadAgain(_ pattern: String, _ expected: String) throws {
    #expect(try stem(pattern) == expected)
    for number in [1, 2, 99, 1234, 9999] {
      let name = try #require(RecordingName(base: expected)).numbered(number)
      #expect(RecordingName(finished: name.finished) == name)
      #expect(RecordingName(unfinished: name.unfinished) == name)
      #expect(name.number == number && name.startTime == RecordingHarness.start)
    }
  }

  @Test func aStreamThatIsCalledLikeATimeHidesNone() throws {
    let base = try #require(try stem("{stream}/{stream}_{time}", "cam-2019-01-02_03-04-05"))
    #expect(RecordingName(base: base)?.startTime == RecordingHarness.start)
    #expect(try stem("{stream}/{stream}_{time}", String(repeating: "s", count: 64)) != nil)
  }

  @Test(arguments: [
    "", "{time}", "cam/{time}", "{stream}", "{stream}/", "{stream}/{stream}", "{stream}/{time}{time}",
    "{stream}/{stream}{time}", "{stream}/cam2{time}", "{stream}/{time}_{stream}", "{stream}/{time}2",
    "{stream}/{time}.part", "{stream}/{time}-x", "{stream}/.{time}", "{stream}/-{time}", "{stream}/a b{time}",
    "{stream}/../{time}", "{stream}/{date}/{time}", "{stream}/{date}", "{stream}/{time",
    "{stream}/{year}-{month}-{day}",
    "{stream}/{day}{month}{year}{hour}{minute}{second}", "{stream}/{year}{month}{day}--{hour}{minute}{second}",
    "{stream}/{year}{month}{day}x{hour}{minute}{second}", "{stream}/é{time}",
    "{stream}/\(String(repeating: "x", count: 101)){time}",
  ])
  func patternsThatNameNothingSafelyAreRefused(_ pattern: String) {
    #expect(throws: ValueError.self) { try RecordingNaming(parsing: pattern) }
  }

  @Test func whatIsNamedByAPatternIsListedFinishedAndFoundAgain() async throws {
    var policy = RecordingPolicy()
    policy.naming = try RecordingNaming(parsing: "{stream}/{stream}_{year}-{month}-{day}_{hour}-{minute}-{second}")
    let folder = try TemporaryFolder()
    let loop = NIOSingletons.posixEventLoopGroup.any()
    let harness = try RecordingHarness(folder, policy: policy)
    await harness.library.finishLeftovers()
    for _ in 0..<2 {
      try await harness.record()
      try harness.renew()
    }
    let expected = ["cam/cam_2026-11-21_07-24-10-2.mp4", "cam/cam_2026-11-21_07-24-10.mp4"]
    #expect(folder.files == expected)
    await harness.library.shutDown()
    unlink("\(folder.path)/\(CatalogueDatabase.fileName)")
    // A killed server's file, and a server that names otherwise.
    #expect(rename("\(folder.path)/\(expected[0])", "\(folder.path)/cam/cam_2026-11-21_07-24-10-2.part.mp4") == 0)
    let other = try RecordingHarness(folder)
    await other.library.finishLeftovers()
    #expect(folder.files == expected)
    let page = try await other.library.catalogue.list(CatalogueQuery(), on: loop).get()
    #expect(page.entries.map(\.key.description).sorted() == expected)
    #expect(page.entries.allSatisfy { $0.startedAt == RecordingHarness.start })
    #expect(try FragmentedFile.search(folder.path).isEmpty)
  }
}
