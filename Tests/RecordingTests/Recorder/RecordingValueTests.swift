@testable import Base
import CChecksum
import FMP4
import NIOCore
@testable import Recording
@testable import RecordingFiles
import RecordingSupport
import Support
import Testing

@Suite struct RecordingValueTests {
  private let progress = RecordingProgress(file: "cam/20261121T072410Z.mp4", bytes: 5, seconds: 1)

  @Test func aRecordingThatIsOverStaysAsItIs() {
    for over in [RecordingState.completed(progress), .cancelled] {
      var state = over
      #expect(state.advance(to: progress) == .refused)
      #expect(state.complete() == .refused)
      #expect(state.fail("again") == .refused)
      #expect(state.cancel() == .refused)
      #expect(state == over)
    }
  }

  @Test func onlyWhatRunsCanComplete() {
    var state = RecordingState.idle
    #expect(state.complete() == .refused)
    #expect(state.advance(to: progress) == .done)
    #expect(state.complete() == .done)
    #expect(state == .completed(progress))
  }

  @Test func whatFailedGoesOnWhenItCanAndDoesNotCompleteOtherwise() {
    var state = RecordingState.idle
    #expect(state.fail("full") == .done)
    #expect(state.complete() == .refused)
    #expect(state.advance(to: progress) == .done)
    #expect(state.fail("full") == .done)
    #expect(state.fail("broken") == .done)
    #expect(state == .failed(progress, reason: "broken"))
    #expect(!state.isOver)
    #expect(state.cancel() == .done)
  }

  @Test func whatOnlyCouldNotBeFinishedCompletesWhenItIs() {
    for state in [RecordingState.idle, .running(progress), .completed(progress), .cancelled, .failed(nil, reason: "x")]
    {
      var other = state
      #expect(other.completeAfterAll() == .refused && other == state)
    }
    var state = RecordingState.failed(progress, reason: "broken")
    #expect(state.completeAfterAll() == .done)
    #expect(state == .completed(progress))
  }

  @Test func checksumsAreThoseOfTheStandardByInstructionAndByTables() {
    // RFC 3720 appendix B.4.
    #expect(Checksum.of(ByteBuffer(repeating: 0, count: 32)) == 0x8A91_36AA)
    #expect(Checksum.of(ByteBuffer(repeating: 0xFF, count: 32)) == 0x62A8_AB43)
    #expect(Checksum.of(ByteBuffer(bytes: 0..<32)) == 0x46DD_794E)
    #expect(Checksum.of(ByteBuffer(string: "123456789")) == 0xE306_9283)
    #expect(Checksum.of(ByteBuffer()) == 0)
    let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    for length in Array(0..<40) + [999, 1000] {
      let expected = weir_crc32c_tables(0, bytes, length)
      #expect(weir_crc32c(0, bytes, length) == expected)
      let half = length / 3
      var pieces = Checksum()
      pieces.add(ByteBuffer(bytes: bytes[..<half]))
      pieces.add(ByteBuffer(bytes: bytes[half..<length]))
      #expect(pieces.value == expected)
    }
  }

  @Test func theBudgetIsSharedAndNeverExceeded() {
    let budget = RecordingBudget(limit: 100)
    #expect(budget.take(60))
    #expect(!budget.isRelaxed)
    #expect(!budget.take(41))
    #expect(budget.take(40))
    budget.give(60)
    #expect(budget.isRelaxed)
    #expect(budget.take(60))
  }

  @Test func namesAreTheUTCStart() throws {
    let name = try #require(RecordingName(finished: "20261121T072410Z.mp4"))
    #expect(name.startTime == 1_795_245_850_000_000_000)
    #expect(name.unfinished == "20261121T072410Z.part.mp4")
    #expect(RecordingName(start: UTCText(1_795_245_850_999_999_999)) == name)
    let second = try #require(RecordingName(unfinished: "20261121T072410Z-2.part.mp4"))
    #expect(second.number == 2)
    #expect(second.finished == "20261121T072410Z-2.mp4")
    #expect(RecordingName(finished: "20261121T072410Z-9999.mp4")?.number == 9999)
  }

  @Test(arguments: [
    "20261121T072410Z", "20261121T072410Z.mp", "20261121T072410Z.part.mp4", "20261121T07241.mp4",
    "2026112AT072410Z.mp4", "20261121T072410Z-1.mp4", "20261121T072410Z-02.mp4", "20261121T072410Z-10000.mp4",
    "20261121T072410Z-.mp4", "20261121T072410Z2.mp4", "../20261121T072410Z.mp4", "20261121T072410Z.mp4 ", "",
    "20261121T07\u{0}410Z.mp4", "２０２６1121T072410Z.mp4", "20261121T072410Z_1.mp4", "20261121T072410Z.x.mp4",
    "1234_20261121--072410.mp4", "120261121T072410Z.mp4", "-20261121T072410Z.mp4", "09991121T072410Z.mp4",
  ])
  func whatDoesNotFitIsNoRecording(_ file: String) {
    #expect(RecordingName(finished: file) == nil)
  }
}

@Suite struct TimeTextTests {
  @Test(arguments: [
    ("2026-11-21T07:24:10Z", 0), ("20261121T072410Z", 0), ("2026-11-21T07:24:10.5Z", 500_000_000),
    ("2026-11-21T08:24:10.000000001+01:00", 1), ("2026-11-21T08:24:10 01:00", 0), ("2026-11-21t02:24:10-05:00", 0),
  ])
  func timesAreRead(_ text: String, _ nanoseconds: Int64) {
    #expect(UTCText.read(text) == RecordingHarness.start + nanoseconds)
  }

  @Test(arguments: [
    "", "2026", "2026-11-21", "2026-11-21T07:24:10", "2026-13-21T07:24:10Z", "2026-11-21T24:24:10Z",
    "2026-11-21T07:24:10.Z", "2026-11-21T07:24:10Z ", "2026-02-31T00:00:00Z", "2025-02-29T00:00:00Z",
    "2026-11-21T07:24:10+25:00", "9999-99-99T99:99:99Z", "-1",
    "2026-11-21T07:24:10.0000000000000000000000000000000000000Z",
  ])
  func whatIsNoTimeIsRefused(_ text: String) {
    #expect(UTCText.read(text) == nil)
  }

  @Test func whatIsFartherThanNanosecondsReachIsAsFarAsTheyDo() {
    #expect(UTCText.read("9999-12-31T23:59:59Z") == .max)
    #expect(UTCText.read("2262-04-11T23:47:16.854775807Z") == .max)
    #expect(UTCText.read("2262-04-11T23:47:16.854775806Z") == .at(.max - 1))
    #expect(UTCText.read("0001-01-01T00:00:00Z") == .at(.min))
  }

  @Test(arguments: ["", "~", "1~2~3", "x~20261121T072410Z~cam", "1~20261121T072410Z~", "1~20261121T072410Z~cam~x"])
  func aCursorThatWasNotGivenIsRefused(_ text: String) {
    #expect(CatalogueCursor(text) == nil)
    #expect(CatalogueCursor("-5~20261121T072410Z-2~cam")?.description == "-5~20261121T072410Z-2~cam")
  }
}
