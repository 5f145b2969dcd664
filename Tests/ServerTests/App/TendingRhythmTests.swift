@testable import Server
import Testing

@Suite struct TendingRhythmTests {
  /// The pauses after so many looks.
  private func pauses(
    _ rhythm: inout TendingRhythm, _ count: Int, isLive: Bool = false, due: Duration? = nil
  ) -> [TendingRhythm.Pause] {
    (0..<count).map { _ in rhythm.pause(isLive: isLive, due: due) }
  }

  @Test func `a live server is looked at twice a second`() {
    var rhythm = TendingRhythm()
    #expect(pauses(&rhythm, 100, isLive: true).allSatisfy { $0 == .short })
  }

  @Test func `twelve looks that find nothing are followed by long pauses`() {
    var rhythm = TendingRhythm()
    let pauses = pauses(&rhythm, 13)
    #expect(pauses[..<11].allSatisfy { $0 == .short })
    #expect(pauses[11...].allSatisfy { $0 == .long(.seconds(10)) })
  }

  @Test func `what begins makes the pauses short again`() {
    var rhythm = TendingRhythm()
    _ = pauses(&rhythm, 12)
    #expect(rhythm.pause(isLive: true, due: nil) == .short)
    #expect(pauses(&rhythm, 11).allSatisfy { $0 == .short })
    #expect(rhythm.pause(isLive: false, due: nil) == .long(.seconds(10)))
  }

  @Test(
    arguments: [
      (0, nil), (500, nil), (501, .milliseconds(501)), (9999, .milliseconds(9999)), (3_600_000, .seconds(10)),
    ] as [(Int, Duration?)])
  func `a pause ends when something is due`(_ due: Int, _ pause: Duration?) {
    var rhythm = TendingRhythm()
    _ = pauses(&rhythm, 12)
    #expect(rhythm.pause(isLive: false, due: .milliseconds(due)) == pause.map { .long($0) } ?? .short)
  }
}
