import FMP4
import Publishing
@testable import Streams
import Testing

@Suite struct KnownGOPDurationsTests {
  private let long = MediaTime(milliseconds: 4000)
  private let short = MediaTime(milliseconds: 1000)

  private func names(_ count: Int) throws -> [StreamName] {
    try (0..<count).map { number in try #require(StreamName("cam\(number)")) }
  }

  @Test func theNewestDistanceOfANameHolds() throws {
    let names = try names(2)
    var known = KnownGOPDurations()
    known.remember(short, of: names[0])
    known.remember(long, of: names[0])
    #expect(known[names[0]] == long)
    known.remember(nil, of: names[0])
    #expect(known[names[0]] == long, "a stream without a second key frame says nothing")
    known.remember(nil, of: names[1])
    #expect(known[names[1]] == nil)
  }

  @Test func aThousandNamesAreRememberedAndThenTheOldestIsForgotten() throws {
    let names = try names(KnownGOPDurations.limit + 1)
    var known = KnownGOPDurations()
    for name in names.dropLast() { known.remember(long, of: name) }
    #expect(known[names[0]] == long)
    known.remember(long, of: names[KnownGOPDurations.limit])
    #expect(known[names[0]] == nil)
    #expect(known[names[1]] == long && known[names[KnownGOPDurations.limit]] == long)
  }
}
