import Answers
import Base
import FMP4
import Glibc
import NIOCore
import NIOPosix
import Publishing
@testable import Recording
@testable import RecordingFiles
import RecordingSupport
import Support
import Testing

/// What the API answers does not depend on the catalogue: all of it can be read from the files again.
@Suite struct LostCatalogueTests {
  private let loop = NIOSingletons.posixEventLoopGroup.any()
  private static let minute: Int64 = 60_000_000_000

  /// The answers of the API, of what is kept and of what was deleted: each recording as it is written there.
  private func answers(_ harness: RecordingHarness) async throws -> [String] {
    for _ in 0..<2000 where harness.library.isCopying { try await Task.sleep(for: .milliseconds(10)) }
    var answers: [String] = []
    for selection in [CatalogueQuery.Selection.kept, .deleted] {
      var query = CatalogueQuery()
      query.selection = selection
      var page = try await harness.library.catalogue.list(query, on: loop).get()
      for _ in 0..<500 where !page.isComplete {
        try await Task.sleep(for: .milliseconds(10))
        page = try await harness.library.catalogue.list(query, on: loop).get()
      }
      answers += page.entries.map { String(buffer: JSONText.encode(EntryAnswer($0))) }
    }
    return answers
  }

  private func restart(_ folder: TemporaryFolder, losing endings: [String]) async throws -> [String] {
    for ending in endings { unlink("\(folder.path)/\(CatalogueDatabase.fileName)\(ending)") }
    let harness = try RecordingHarness(folder)
    await harness.library.finishLeftovers()
    let answers = try await answers(harness)
    await harness.library.shutDown()
    return answers
  }

  /// A stream of that name with two outages and a change of parameters.
  private func recordMuch(_ folder: TemporaryFolder, _ stream: String, wall: WallTime) async throws -> RecordingHarness
  {
    let harness = try RecordingHarness(folder, stream: stream)
    let tracks = [try SyntheticMedia.video(), try SyntheticMedia.audio()]
    try harness.startPublication(tracks, wall: wall)
    try harness.send(SyntheticMedia.interleaved(seconds: 2))
    try harness.interrupt()
    try harness.startPublication(tracks, wall: wall + Self.minute)
    try harness.send(SyntheticMedia.interleaved(seconds: 3))
    try harness.interrupt()
    var wide = tracks
    wide[0].codec = Codec(
      try H264.Configuration(
        record: ByteBuffer(
          bytes: SyntheticMedia.hex(
            "0164001effe1001e6764001eacd940a02ff97016a0202028000003000800000301e078b16cb001000668ebe3cb22c0fdf8f800"))))
    try harness.startPublication(wide, wall: wall + 2 * Self.minute)
    try harness.send(SyntheticMedia.interleaved(seconds: 2))
    return harness
  }

  @Test func theAPIAnswersTheSameWhenTheCatalogueIsMadeAnew() async throws {
    let folder = try TemporaryFolder()
    let start = RecordingHarness.start + 345_678_912

    // One as it should be.
    let whole = try await recordMuch(folder, "whole", wall: start)
    try await whole.end()
    await whole.library.shutDown()

    let audio = try RecordingHarness(folder, stream: "audio")
    try audio.startPublication([try SyntheticMedia.audio()], wall: start)
    try audio.send((0..<400).map { SyntheticMedia.audio($0) })
    try await audio.end()
    await audio.library.shutDown()

    // One that the disk ended: less is free than is to stay free.
    let disk = FillingDisk()
    let failing = try RecordingHarness(folder, keepFree: disk.keepFree, stream: "failed", calls: disk.calls)
    try failing.startPublication([try SyntheticMedia.video()], wall: start)
    try failing.send((0..<60).map { SyntheticMedia.frame($0, group: 30) })
    try await failing.settle()
    disk.fill()
    try failing.send((60..<120).map { SyntheticMedia.frame($0, group: 30) })
    try await failing.settle()
    disk.empty()
    try await failing.end()
    await failing.library.shutDown()

    // One that a killed server left.
    let killed = try await recordMuch(folder, "killed", wall: start)
    try await killed.settle()
    let left = try killed.bytes("killed/20261121T072410Z.part.mp4")
    killed.recorder.cancel()
    try await killed.settle()
    await killed.library.shutDown()
    let file = open("\(folder.path)/killed/20261121T072410Z.part.mp4", O_WRONLY | O_CREAT, 0o644)
    #expect(write(file, left, left.count - 100) == left.count - 100)
    close(file)
    let next = try RecordingHarness(folder)
    try await next.finishLeftovers()
    _ = try await answers(next)

    // One is protected, and one more of the first was deleted.
    let stream = try #require(StreamName("whole"))
    let name = try #require(RecordingName(finished: "20261121T072410Z.mp4"))
    let again = try await recordMuch(folder, "whole", wall: start + 9 * Self.minute)
    try await again.end()
    await again.library.shutDown()
    let catalogue = next.library.catalogue
    let now = SteadyClock.system().wallTime
    let salvaged = RecordingKey(stream: try #require(StreamName("killed")), name: name)
    let deleted = RecordingKey(stream: stream, name: name)
    guard case .success = try await catalogue.delete(deleted, now: now, on: loop).get(),
      case .success = try await catalogue.setProtection(true, salvaged, on: loop).get()
    else {
      Issue.record("neither deleted nor protected")
      return
    }
    let before = try await answers(next)
    await next.library.shutDown()
    #expect(before.count == 5, "\(before)")
    let all = before.joined(separator: "\n")
    for told in [
      #""salvaged":true"#, #""protected":true"#, #""reason":"the disk of "#, #""state":"failed""#, #""seconds":"#,
      "nothing came from the publisher", #""deletedAt":"20"#,
    ] { #expect(all.contains(told), "\(told) in \(all)") }

    #expect(try await restart(folder, losing: []) == before, "a start finds nothing to put right")
    #expect(try await restart(folder, losing: ["", "-wal", "-shm"]) == before)
  }
}
