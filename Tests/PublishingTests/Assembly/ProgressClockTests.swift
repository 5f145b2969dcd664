import Base
@testable import Publishing
import Support
import Testing

@Suite("The progress of media while none arrives")
struct ProgressClockTests {
  private let interval = ProgressClock.interval

  @Test func `Nothing is told before the first sample`() {
    var clock = ProgressClock()
    #expect(clock.tell(now: .max) == nil && clock.deadline(after: 0) == nil)
  }

  @Test func `Progress is told after an interval without media, and runs on by the clock`() {
    var clock = ProgressClock()
    clock.saw(5000, now: 100)
    #expect(clock.tell(now: 100 + interval - 1) == nil)
    #expect(clock.tell(now: 100 + interval) == 5000 + interval)
    #expect(clock.tell(now: 100 + 2 * interval - 1) == nil, "not twice in an interval")
    #expect(clock.tell(now: 100 + 3 * interval) == 5000 + 3 * interval)
  }

  @Test func `Media puts it off`() {
    var clock = ProgressClock()
    clock.saw(0, now: 0)
    clock.saw(7, now: .at(interval - 1))
    #expect(clock.tell(now: .at(interval)) == nil)
    #expect(clock.tell(now: .at(2 * interval - 1)) == 7 + interval)
  }

  @Test func `A sample from before does not take progress back`() {
    var clock = ProgressClock()
    clock.saw(1000, now: 0)
    clock.saw(999, now: 50)
    #expect(clock.tell(now: .at(interval)) == 1000 + interval)
    clock.saw(1000, now: .at(interval))
    #expect(clock.tell(now: .at(2 * interval)) == 1000 + interval, "one of the same time arrived later")
  }

  @Test func `The deadline is when there is something to tell, and never now`() {
    var clock = ProgressClock()
    clock.saw(0, now: 10)
    #expect(clock.deadline(after: 10) == .at(10 + interval))
    #expect(clock.deadline(after: 10 + interval) == .at(11 + interval))
    _ = clock.tell(now: 10 + interval)
    #expect(clock.deadline(after: 10 + interval) == .at(10 + 2 * interval))
  }
}
