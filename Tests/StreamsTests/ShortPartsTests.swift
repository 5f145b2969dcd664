import FMP4
@testable import Streams
import Testing

@Suite struct ShortPartsTests {
  private func count(_ parts: [(segment: Int, milliseconds: Int64)], target: Int64? = 200) -> Int {
    var short = ShortParts()
    for part in parts {
      short.take(
        MediaTime(milliseconds: part.milliseconds), segment: part.segment,
        target: target.map { MediaTime(milliseconds: $0) })
    }
    return short.count
  }

  @Test func `a part that another one of its segment follows may not be below 85 % of the target`() {
    #expect(count([(1, 200), (1, 170), (1, 200)]) == 0)
    #expect(count([(1, 200), (1, 169), (1, 200), (1, 40), (1, 200)]) == 2)
  }

  @Test func `the last part of a segment may be`() {
    #expect(count([(1, 200), (1, 10), (2, 200), (2, 10)]) == 0)
  }

  /// Both are as they come, not rounded: 17/75 of a second is 85 % of 4/15, and not below 85 % of 0.266666.
  @Test func `a part of exactly 85 % is not short`() {
    for target in [MediaTime(ticks: 4, timescale: 15), MediaTime(ticks: 266_666, timescale: 1_000_000)] {
      var short = ShortParts()
      for _ in 0..<3 { short.take(MediaTime(ticks: 20_400, timescale: 90_000), segment: 1, target: target) }
      #expect(short.count == 0)
    }
  }

  @Test func `nothing is short without a target`() {
    #expect(count([(1, 1), (1, 1)], target: nil) == 0)
  }
}
