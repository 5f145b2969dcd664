import Base
@testable import Publishing
import Support
import Testing

@Suite struct ClockFollowerTests {
  private static let hours = isLong ? 24 : 4

  /// In thousandths of real time. The dates of ten minutes of media, over a network that delays by 20 to 24 ms. A clock that is slow
  /// looks like a narrow uplink for half a minute.
  @Test(arguments: [10, -10, 20, -20, 50, -50, 100, -100] as [Int64])
  func aClockThatIsFarOffIsToldAndDatesStayWithinASecond(_ thousandths: Int64) {
    var follower = ClockFollower(delay: 20_000_000, now: 20_000_000)
    var told = follower.told
    var steps: [UInt64] = []
    var worst: UInt64 = 0
    let known: Int64 = thousandths < 0 ? 750 : 500
    for frame in 0..<15_000 as Range<Int64> {
      let media = frame * 40_000_000
      let delay = 20_000_000 + frame * 7919 % 4_000_000
      let now = MonotonicTime.at(media / (1000 + thousandths) * 1000 + delay)
      if let new = follower.saw(media, now: now) {
        // The beginning of five seconds has a step of its own.
        if frame > 125 { steps.append((new &- told).magnitude) }
        told = new
      }
      if frame > known || thousandths >= -50 {
        worst = max(worst, (now.nanoseconds - media - told.nanoseconds).magnitude)
      }
      if frame == known {
        #expect(follower.error.map { ($0 - Int(thousandths)).magnitude <= 1 } == true)
      }
    }
    #expect(worst < 2_000_000_000, "less than a segment: \(worst)")
    // One each time that half a second is reached: no small ones, which would be steps inside a timeline.
    #expect(!steps.isEmpty && steps.allSatisfy { $0 >= ClockFollower.longestError - 5_000_000 }, "\(steps)")
    #expect(follower.isOff)
  }

  /// In thousandths.
  @Test(arguments: [(9, false), (10, true), (-9, false), (-10, true)] as [(Int64, Bool)])
  func aClockIsToldFromOnePercentOn(_ thousandths: Int64, _ isTold: Bool) {
    var follower = ClockFollower(delay: 0, now: 0)
    for frame in 0..<2000 as Range<Int64> {
      let media = frame * 40_000_000
      _ = follower.saw(media, now: .at(media / (1000 + thousandths) * 1000))
    }
    #expect((follower.error != nil) == isTold && follower.isOff)
  }

  @Test func whatWasToldIsTakenBackWhenTheClockIsRight() {
    var follower = ClockFollower(delay: 0, now: 0)
    var now: Int64 = 0
    for frame in 0..<3000 as Range<Int64> {
      now += frame < 2000 ? 41_000_000 : 40_000_000
      _ = follower.saw(frame * 40_000_000, now: .at(now))
      if frame == 1999 { #expect(follower.error != nil) }
    }
    #expect(follower.error == nil)
  }

  /// A network that stands still for three seconds and is made up for, and one that is slow by so much from then on.
  @Test(arguments: [false, true]) func aStallIsNoClock(lasts: Bool) {
    var follower = ClockFollower(delay: 0, now: 0)
    for frame in 0..<3000 as Range<Int64> {
      let media = frame * 40_000_000
      let stalled = (1000..<1075).contains(frame) ? 3_000_000_000 - (frame - 1000) * 40_000_000 : 0
      _ = follower.saw(media, now: .at(media + (lasts && frame >= 1000 ? 3_000_000_000 : stalled)))
      #expect(!follower.isOff && follower.error == nil)
    }
  }

  /// In percent of the rate, from the beginning and after two minutes: media falls behind for 20 s and catches up later.
  @Test(arguments: [0, 3000] as [Int64], [(90, 500, 110), (90, 500, 200), (95, 500, 105)] as [(Int64, Int64, Int64)])
  func anUplinkThatIsTooNarrowForAWhileIsNoClock(from: Int64, _ way: (percent: Int64, frames: Int64, after: Int64)) {
    var follower = ClockFollower(delay: 20_000_000, now: 20_000_000)
    var queue: Int64 = 0
    for frame in 0..<9000 as Range<Int64> {
      let percent = (from..<(from + way.frames)).contains(frame) ? way.percent : way.after
      queue = max(0, queue + 4_000_000_000 / percent - 40_000_000)
      let delay = 20_000_000 + queue + frame * 7919 % 4_000_000
      #expect(follower.saw(frame * 40_000_000, now: .at(frame * 40_000_000 + delay)) == nil)
      #expect(!follower.isOff && follower.error == nil)
    }
  }

  @Test func aGoodClockIsLeftAlone() {
    var follower = ClockFollower(delay: 20_000_000, now: 0)
    for second in 0..<86_400 as Range<Int64> {
      let jitter = second * 7919 % 35_000_000
      #expect(follower.saw(second * 1_000_000_000, now: .at(second * 1_000_000_000 + 20_000_000 + jitter)) == nil)
    }
  }

  @Test func aFullQueueIsNotTakenForADrift() {
    var follower = ClockFollower(delay: 0, now: 0)
    var told = MonotonicTime.zero
    // Ten minutes of three seconds' delay.
    for tick in 0..<6000 as Range<Int64> {
      told = follower.saw(tick * 100_000_000, now: .at(tick * 100_000_000 + 3_000_000_000)) ?? told
    }
    #expect(told <= .at(6 * ClockFollower.step))
  }

  @Test func whatWasSeenBeforeABreakIsForgotten() {
    var follower = ClockFollower(delay: 0, now: 0)
    for second in 0..<140 as Range<Int64> {
      if second == 119 { follower.forget() }
      #expect(follower.saw(second * 1_000_000_000, now: .at(second * 1_000_000_000 + 90_000_000)) == nil)
    }
  }

  /// An encoder with look-ahead: a second of media comes at once, and the rest as it is made.
  @Test func theTimesOfAFirstBurstAreToldAnewOnce() {
    var follower = ClockFollower(delay: 740_000_000, now: 740_000_000)
    var told: [MonotonicTime] = []
    for tick in 0..<300 as Range<Int64> {
      let delay = max(20_000_000, 740_000_000 - tick * 33_000_000) + tick * 7919 % 9_000_000
      if let new = follower.saw(tick * 33_000_000, now: .at(tick * 33_000_000 + delay)) { told.append(new) }
    }
    #expect(told.count == 1 && told.allSatisfy { (20_000_000..<30_000_000).contains($0) }, "\(told)")
  }

  @Test func aBurstThatLastsIsNotWaitedForLongerThanFourSeconds() {
    var follower = ClockFollower(delay: 5_000_000_000, now: 5_000_000_000)
    var told: [(at: Int64, delay: MonotonicTime)] = []
    // Twice as fast as real time.
    for tick in 0..<200 as Range<Int64> {
      let now = tick * 33_000_000
      if let new = follower.saw(tick * 66_000_000, now: .at(now + 5_000_000_000)) { told.append((now, new)) }
    }
    #expect(told.count == 1 && told.allSatisfy { $0.at <= 4_100_000_000 && $0.delay < 1_200_000_000 }, "\(told)")
  }

  @Test func aBeginningThatWasNotLateIsLeftAlone() {
    var follower = ClockFollower(delay: 15_500_000, now: 0)
    for tick in 0..<300 as Range<Int64> {
      #expect(
        follower.saw(tick * 33_000_000, now: .at(tick * 33_000_000 + 15_000_000 + tick * 7919 % 40_000_000)) == nil)
    }
  }

  /// What had gathered before the beginning comes a little faster than real time: in the end times of day are right.
  @Test(arguments: [105, 120, 200] as [Int64]) func aQueueThatDrainsSlowlyIsNoDelay(_ percent: Int64) {
    let (delay, queue) = (20_000_000 as Int64, 3_000_000_000 as Int64)
    var follower = ClockFollower(delay: .at(delay + queue), now: .at(delay + queue))
    for frame in 0..<9000 as Range<Int64> {
      let time = frame * 1000 / 30
      let inQueue = max(0, queue - time * 1_000_000 * (percent - 100) / percent)
      _ = follower.saw(time * 1_000_000, now: .at(time * 1_000_000 + delay + inQueue))
    }
    #expect(follower.told.nanoseconds - delay < 100_000_000)
  }
}
