import Base
@testable import Local
import Support
import Testing

@Suite struct TimestampFilterTests {
  private static let now = MonotonicTime.at(1000 * second)
  private static let second: Int64 = 1_000_000_000
  private static let millisecond: Int64 = 1_000_000

  private func believed(_ time: MonotonicTime) -> Bool {
    var times = TimestampFilter()
    return times.believed(time, now: Self.now) == time
  }

  @Test func aTimeIsBelievedFromASecondAgoToAFewMillisecondsAhead() {
    #expect(believed(Self.now) && believed(Self.now - 40 * Self.millisecond))
    #expect(believed(Self.now - Self.second) && !believed(Self.now - Self.second - 1))
    #expect(believed(Self.now + 5 * Self.millisecond) && !believed(Self.now + 5 * Self.millisecond + 1))
  }

  @Test(arguments: [0, -1, .min, .max, 2_147_483_632_000_000_000, 1_700_000_000_000_000_000] as [Int64])
  func otherClocksAreNot(time: Int64) {
    #expect(!believed(.at(time)))
  }

  @Test func aClockThatLeapsIsLeftUntilItIsRightAgain() {
    var times = TimestampFilter()
    for frame in 0..<100 as Range<Int64> {
      let now = Self.now + frame * 33 * Self.millisecond
      let hasLeapt = (30..<60).contains(frame)
      let told = now - 10 * Self.millisecond + (hasLeapt ? 68 * 365 * 86_400 * Self.second : 0)
      #expect(times.believed(told, now: now) == (hasLeapt ? nil : told))
    }
  }

  @Test func aClockThatLagsMoreAndMoreIsLeft() {
    var times = TimestampFilter()
    let taken = (0..<3000 as Range<Int64>).count { frame in
      let now = Self.now + frame * 33 * Self.millisecond
      return times.believed(now - frame * Self.millisecond, now: now) != nil
    }
    #expect(taken == 1001)
  }

  @Test func framesThatWaitedWhileTheProcessStoodStillKeepTheirTimes() {
    var times = TimestampFilter()
    #expect(times.believed(Self.now - Self.millisecond, now: Self.now) != nil)
    let later = Self.now + 4 * Self.second
    for frame in 1...4 as ClosedRange<Int64> {
      let taken = Self.now + frame * 33 * Self.millisecond
      #expect(times.believed(taken, now: later + frame) == taken)
    }
    // What is from before that while is of another clock.
    #expect(times.believed(Self.now - 3 * Self.second, now: later + 5) == nil)
    #expect(times.believed(Self.now + 200 * Self.millisecond, now: later + 2 * Self.second) == nil)
  }
}
