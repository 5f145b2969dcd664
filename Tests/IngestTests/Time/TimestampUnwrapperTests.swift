import Testing

@testable import Ingest

@Suite("Timestamps of 32 bits")
struct TimestampUnwrapperTests {
  @Test func aCounterThatWrapsGoesOn() {
    var unwrapper = TimestampUnwrapper()
    #expect(unwrapper.unwrap(0xFFFF_FFF0) == 0xFFFF_FFF0)
    #expect(unwrapper.unwrap(0x10) == 0x1_0000_0010)
    #expect(unwrapper.unwrap(0x20) == 0x1_0000_0020)
  }

  @Test func aTrackThatLagsBehindAWrapStaysBehindIt() {
    var unwrapper = TimestampUnwrapper()
    _ = unwrapper.unwrap(0xFFFF_FFFE)
    #expect(unwrapper.unwrap(5) == 0x1_0000_0005)
    #expect(unwrapper.unwrap(0xFFFF_FFFF) == 0xFFFF_FFFF)
    #expect(unwrapper.unwrap(9) == 0x1_0000_0009)
  }

  @Test func stepsOfUpToHalfTheRangeKeepTheirDirection() {
    var unwrapper = TimestampUnwrapper()
    #expect(unwrapper.unwrap(0) == 0)
    #expect(unwrapper.unwrap(0x7FFF_FFFF) == 0x7FFF_FFFF)
    #expect(unwrapper.unwrap(0) == 0)
    #expect(unwrapper.unwrap(0x8000_0000) == -0x8000_0000)
  }

  @Test func everyWrapOfAYearIsSeen() {
    var unwrapper = TimestampUnwrapper()
    var true64: Int64 = 0
    for _ in 0..<40_000 {
      #expect(unwrapper.unwrap(UInt32(truncatingIfNeeded: true64)) == true64)
      true64 += 788_400
    }
  }
}
