import FMP4
import Testing

@testable import Ingest

@Suite("Audio that is mended again and again")
struct AudioMendingTests {
  private static let second: Int64 = 1_000_000_000

  /// Counts, and what was told: true for a warning, false for one that is withdrawn.
  private func outcome(correctedAt seconds: [Int64], until end: Int64) -> (count: Int, told: [Bool]) {
    var mending = AudioMending()
    var out: [PublicationAction] = []
    for time in 0...end {
      let correction = seconds.contains(time) ? AudioGrid.Correction(milliseconds: 30, count: 1) : nil
      mending.saw(correction, .audio, at: time * Self.second, to: &out)
    }
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

  @Test func `Three corrections within a minute are told, and taken back after a minute without`() {
    #expect(outcome(correctedAt: [5, 30, 65], until: 125).told == [true])
    #expect(outcome(correctedAt: [5, 30, 65], until: 126).told == [true, false])
    let lasting = outcome(correctedAt: [5, 30, 65, 90, 120], until: 180)
    #expect(lasting.count == 5 && lasting.told == [true])
  }

  @Test func `Fewer are counted and not told`() {
    for seconds in [[5, 30, 66], [5]] as [[Int64]] {
      let found = outcome(correctedAt: seconds, until: 200)
      #expect(found.count == seconds.count && found.told.isEmpty)
    }
  }
}
