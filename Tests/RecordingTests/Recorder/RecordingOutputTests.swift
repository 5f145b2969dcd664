import Base
import FMP4
import Logging
import Publishing
@testable import Recording
import RecordingFiles
import RecordingSupport
@testable import Streams
import Support
import Synchronization
import Testing

@Suite struct RecordingOutputTests {
  /// What a recorder gives, one word each.
  private static func outputs(
    _ order: RecordingOrder = RecordingOrder(), end: (Recorder) -> Void = { $0.receive(.end(.finished)) }
  ) async throws -> [String] {
    let folder = try TemporaryFolder()
    let given = Mutex<[String]>([])
    var settings = RecordingSettings(
      folder: folder.path, keepFree: 0, clock: .system(),
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ).ordered(order)
    settings.give = { output in
      let word: String? =
        switch output {
        case .prospect(let what, _): "prospect \(what)"
        case .event(let event): if case .progressed = event.kind { nil } else { "\(event.kind)" }
        case .unfinished(_, let need): "needs \(need)"
        case .endedEarly(_, let epoch): "endedEarly \(epoch)"
        case .state, .split, .waits: nil
        }
      if let word { given.withLock { $0.append(word) } }
    }
    let recorder = Recorder(
      stream: try #require(StreamName("cam")), epoch: "e", settings: settings, threads: WorkQueue("test"))
    var epoch = Epoch(id: "e", settings: StreamSettings())
    epoch.startPublication()
    let events =
      [
        .clock(WallClockAnchor(mediaTime: .zero, wallTime: RecordingHarness.start)),
        .tracks([try SyntheticMedia.video()]),
      ]
      + (0..<150).map { MediaEvent.sample(SyntheticMedia.frame($0, group: 30)) }
    for event in events { for stored in try epoch.receive(event) { recorder.receive(stored) } }
    // Nothing waits: what ends it leaves nothing out.
    for _ in 0..<1000 where !recorder.isIdle { try await Task.sleep(for: .milliseconds(10)) }
    end(recorder)
    for _ in 0..<1000 where !recorder.isIdle { try await Task.sleep(for: .milliseconds(10)) }
    withExtendedLifetime(folder) {}
    return given.withLock { $0 }
  }

  /// How a file's end is given where its file system can make a movie at once, and where that needs a copy.
  private static let finished = [["prospect stored", "stored"], ["needs copy"]]

  @Test func `A file is announced before it has its name, and told after it`() async throws {
    let given = try await Self.outputs()
    #expect(Self.finished.map { ["started", "stopped(\(RecordingStop.streamEnded))"] + $0 }.contains(given))
  }

  @Test func `A cancelled recording is not announced`() async throws {
    #expect(try await Self.outputs { $0.cancel() } == ["started", "cancelled"])
  }

  @Test func `The end of the longest recording comes after its file`() async throws {
    let given = try await Self.outputs(RecordingOrder(maximumDuration: 2_000_000_000))
    let expected = Self.finished.map { ["started", "stopped(\(RecordingStop.longest))"] + $0 + ["endedEarly e"] }
    #expect(expected.contains(given))
  }
}
