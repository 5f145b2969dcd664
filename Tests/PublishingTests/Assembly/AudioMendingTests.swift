@testable import Base
import FMP4
@testable import Publishing
import Testing

@Suite("Audio that is mended again and again")
struct AudioMendingTests {
  private static let second: Int64 = 1_000_000_000

  /// Counts, and what was told: true for a warning, false for one that is withdrawn.
  private func outcome(
    correctedAt seconds: [Int64], by milliseconds: Int64, fillsHole: Bool = false, until end: Int64, ends: Bool = false
  ) -> (count: Int, told: [Bool]) {
    var mending = AudioMending()
    var out: [PublicationAction] = []
    for time in 0...end {
      let correction = AudioGrid.Correction(milliseconds: milliseconds, count: 1, fillsHole: fillsHole)
      mending.saw(seconds.contains(time) ? correction : nil, .audio, at: time * Self.second, to: &out)
    }
    if ends { mending.end(.audio, to: &out) }
    var (count, told) = (0, [Bool]())
    for action in out {
      switch action {
      case .inBand(.correctedAudio): count += 1
      case .warn(.mendsAudio): told.append(true)
      case .withdraw(.mendsAudio): told.append(false)
      default: break
      }
    }
    return (count, told)
  }

  @Test(arguments: [Int64(201), -201])
  func `More than one percent of a minute is told, and taken back below half of that`(_ milliseconds: Int64) {
    #expect(outcome(correctedAt: [5, 30, 65], by: milliseconds, until: 90).told == [true])
    #expect(outcome(correctedAt: [5, 30, 65], by: milliseconds, until: 91).told == [true, false])
    let lasting = outcome(correctedAt: [5, 30, 65, 90, 120], by: milliseconds, until: 150)
    #expect(lasting.count == 5 && lasting.told == [true])
  }

  /// A film that is played in a loop has a step at each turn.
  @Test func `Less is counted and not told, nor are two corrections of any length`() {
    let turns = Array(stride(from: Int64(8), to: 200, by: 8))
    for (seconds, milliseconds) in [(turns, -23), ([5, 30, 66], 201), ([5, 30], 900)] as [([Int64], Int64)] {
      let found = outcome(correctedAt: seconds, by: milliseconds, until: 200)
      #expect(found.count == seconds.count && found.told.isEmpty)
    }
  }

  @Test func `Gaps that missing frames leave are counted and not told`() {
    let found = outcome(correctedAt: [5, 10, 15, 20], by: 400, fillsHole: true, until: 30)
    #expect(found.count == 4 && found.told.isEmpty)
  }

  @Test func `It is taken back when its track ends`() {
    #expect(outcome(correctedAt: [5, 10, 15], by: 300, until: 20, ends: true).told == [true, false])
    #expect(outcome(correctedAt: [5], by: 300, until: 20, ends: true).told.isEmpty)
  }
}
