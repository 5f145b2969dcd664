@testable import Delivery
import Testing

@Suite struct GrowingRangeTests {
  @Test func rangesOfWhatGrowsAreFromAByteOnOrClosed() {
    #expect(GrowingRange("bytes=0-") == .whole)
    #expect(GrowingRange("bytes=7-") == .from(7))
    #expect(GrowingRange("bytes=7-9007199254740991") == .from(7))
    #expect(GrowingRange("bytes=7-9") == .closed(7..<10))
    #expect(GrowingRange("bytes=-9") == .whole)
    #expect(GrowingRange("bytes=1-2,4-5") == .whole)
    #expect(GrowingRange("lines=1-2") == .whole)
  }
}
