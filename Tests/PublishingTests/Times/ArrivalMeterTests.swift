@testable import Publishing
import Base
import Support
import Testing

@Suite struct ArrivalMeterTests {
  /// When it changes its mind, in seconds, for frames of 30 a second over a line that takes `speed(t)` of real time at
  /// second `t`.
  private func changes(seconds: Double, speed: (Double) -> Double) -> [(at: Double, fallsBehind: Bool)] {
    var meter = ArrivalMeter()
    var found: [(Double, Bool)] = []
    var now = 0.0
    var media = 0.0
    while now < seconds {
      if let change = meter.saw(Int64(media * 1000) * 1_000_000, now: .at(Int64(now * 1e9))) {
        found.append((now, change))
      }
      media += 1.0 / 30
      now = max(now + 1.0 / 30 / speed(now), 0)
    }
    return found
  }

  @Test func aLineOfHalfTheBitrateIsToldWithinFiveSecondsAndTakenBack() {
    let found = changes(seconds: 40) { $0 > 10 && $0 < 20 ? 0.5 : 1 }
    #expect(found.map(\.fallsBehind) == [true, false])
    #expect(found.first.map { $0.at > 10 && $0.at < 15 } == true)
    #expect(found.last.map { $0.at > 20 && $0.at < 25 } == true)
  }

  @Test func aLineThatIsNearlyWideEnoughAndAClockThatIsSlowAreNotToldOf() {
    #expect(changes(seconds: 60) { _ in 0.9 }.isEmpty)
    #expect(changes(seconds: 60) { _ in 0.999 }.isEmpty)
    #expect(changes(seconds: 60) { _ in 1.5 }.isEmpty)
  }

  @Test func aStallThatIsMadeUpForIsNotToldOf() {
    // Nothing for two seconds, then all of it at once.
    #expect(changes(seconds: 30) { $0 > 10 && $0 < 10.01 ? 1.0 / 60 : $0 > 10 && $0 < 12.5 ? 20 : 1 }.isEmpty)
  }
}
