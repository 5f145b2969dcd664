import Testing

@testable import Server

@Suite struct TendingRhythmTests {
  /// The pauses after so many looks of that finding.
  private func pauses(
    _ rhythm: inout TendingRhythm, _ count: Int, _ finding: TendingRhythm.Finding, due: Duration? = nil
  ) -> [TendingRhythm.Pause] {
    (0..<count).map { _ in rhythm.pause(after: finding, due: due) }
  }

  @Test func `a live server is looked at twice a second`() {
    var rhythm = TendingRhythm()
    #expect(pauses(&rhythm, 100, .live).allSatisfy { $0 == .short })
  }

  @Test func `twelve looks that find nothing are followed by long pauses`() {
    var rhythm = TendingRhythm()
    let pauses = pauses(&rhythm, 13, .quiet)
    #expect(pauses[..<11].allSatisfy { $0 == .short })
    #expect(pauses[11...].allSatisfy { $0 == .long(.seconds(10)) })
  }

  @Test func `what begins makes the pauses short again`() {
    var rhythm = TendingRhythm()
    _ = pauses(&rhythm, 12, .quiet)
    #expect(rhythm.pause(after: .live, due: nil) == .short)
    #expect(pauses(&rhythm, 11, .quiet).allSatisfy { $0 == .short })
    #expect(rhythm.pause(after: .quiet, due: nil) == .long(.seconds(10)))
  }

  @Test func `what a look has set off is waited for, and no more than that`() {
    var rhythm = TendingRhythm()
    _ = pauses(&rhythm, 12, .quiet)
    #expect(rhythm.pause(after: .settling, due: nil) == .short)
    #expect(rhythm.pause(after: .quiet, due: nil) == .long(.seconds(10)))
  }

  @Test(
    arguments: [
      (0, nil), (500, nil), (501, .milliseconds(501)), (9999, .milliseconds(9999)), (3_600_000, .seconds(10)),
    ] as [(Int, Duration?)])
  func `a pause ends when something is due`(_ due: Int, _ pause: Duration?) {
    var rhythm = TendingRhythm()
    _ = pauses(&rhythm, 12, .quiet)
    #expect(rhythm.pause(after: .quiet, due: .milliseconds(due)) == pause.map { .long($0) } ?? .short)
  }
}
