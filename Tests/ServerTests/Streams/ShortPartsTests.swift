import FMP4
import Testing

@testable import Server

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

  @Test func `nothing is short without a target`() {
    #expect(count([(1, 1), (1, 1)], target: nil) == 0)
  }
}
