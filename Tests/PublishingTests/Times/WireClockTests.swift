@testable import Publishing
import Base
import FMP4
import Testing

@Suite("A publisher's clock")
struct WireClockTests {
  @Test func aCounterThatWrapsGoesOn() {
    var clock = WireClock(hertz: 1000, bits: 32)
    #expect(clock.ticks(0xFFFF_FFF0) == 0xFFFF_FFF0)
    #expect(clock.ticks(0x10) == 0x1_0000_0010)
    #expect(clock.ticks(0x20) == 0x1_0000_0020)
  }

  @Test func aTrackThatLagsBehindAWrapStaysBehindIt() {
    var clock = WireClock(hertz: 1000, bits: 32)
    _ = clock.ticks(0xFFFF_FFFE)
    #expect(clock.ticks(5) == 0x1_0000_0005)
    #expect(clock.ticks(0xFFFF_FFFF) == 0xFFFF_FFFF)
    #expect(clock.ticks(9) == 0x1_0000_0009)
  }

  @Test func stepsOfUpToHalfTheRangeKeepTheirDirection() {
    var clock = WireClock(hertz: 1000, bits: 32)
    #expect(clock.ticks(0) == 0)
    #expect(clock.ticks(0x7FFF_FFFF) == 0x7FFF_FFFF)
    #expect(clock.ticks(0) == 0)
    #expect(clock.ticks(0x8000_0000) == -0x8000_0000)
  }

  @Test func everyWrapOfAYearIsSeen() {
    var clock = WireClock(hertz: 1000, bits: 32)
    var true64: Int64 = 0
    for _ in 0..<40_000 {
      #expect(clock.ticks(UInt64(UInt32(truncatingIfNeeded: true64))) == true64)
      true64 += 788_400
    }
  }

  @Test func aClockOfNinetyKilohertzAndThirtyThreeBitsGoesOnAfterADay() {
    var clock = WireClock(hertz: 90_000, bits: 33)
    let range: UInt64 = 1 << 33
    #expect(clock.ticks(range - 3000) == Int64(range) - 3000)
    #expect(clock.ticks(0) == Int64(range))
    // A frame that is decoded before the wrap, behind one that is decoded after it.
    #expect(clock.ticks(range - 6000) == Int64(range) - 6000)
    #expect(clock.nanoseconds(9000) == 95_443_717_688_889 + 100_000_000)
    // What is beyond its bits does not count.
    #expect(clock.ticks(range + 12_000) == Int64(range) + 12_000)
  }

  @Test func ticksOfNinetyKilohertzComeBackFromNanoseconds() {
    var clock = WireClock(hertz: 90_000, bits: 33)
    for tick in stride(from: UInt64(0), to: 400_000, by: 7) {
      #expect(MediaTime(nanoseconds: clock.nanoseconds(tick)).rescaled(to: 90_000) == Int64(tick))
    }
  }

  @Test func aCounterThatLacksItsHighestBitGoesOn() {
    var clock = WireClock(hertz: 1000, bits: 32, mayLackHighestBit: true)
    #expect(clock.ticks(0x7FFF_FFFA) == 0x7FFF_FFFA)
    #expect(clock.ticks(2) == 0x8000_0002)
    // The other track.
    #expect(clock.ticks(0x7FFF_FFFE) == 0x7FFF_FFFE)
    #expect(clock.ticks(30_000) == 0x8000_7530)
    // Wrapped once more.
    _ = clock.ticks(0x4000_0000)
    _ = clock.ticks(0x7FFF_FFFF)
    #expect(clock.ticks(4) == 0x1_0000_0004)
  }

  @Test func aCounterThatMayLackItsHighestBitWrapsWithItToo() {
    var clock = WireClock(hertz: 1000, bits: 32, mayLackHighestBit: true)
    #expect(clock.ticks(0x7FFF_FFF0) == 0x7FFF_FFF0)
    #expect(clock.ticks(0x8000_0010) == 0x8000_0010)
    #expect(clock.ticks(0xC000_0000) == 0xC000_0000)
    #expect(clock.ticks(0xFFFF_FFF0) == 0xFFFF_FFF0)
    #expect(clock.ticks(0x10) == 0x1_0000_0010)
    // A jump that is no wrap of either kind.
    #expect(clock.ticks(0x8000_0010 - 100_000) == 0x1_8000_0010 - 100_000)
  }

  @Test(arguments: [false, true]) func noWidthTraps(mayLackHighestBit: Bool) {
    for bits in [0, 1, 8, 63, 64, 65] {
      var clock = WireClock(hertz: 90_000, bits: bits, mayLackHighestBit: mayLackHighestBit)
      for wire in [0, 1, .max, 1 << 62, .max - 1, 1 << 63] as [UInt64] { _ = clock.nanoseconds(wire) }
    }
  }
}
