import Base
@testable import Publishing
import Support
import Testing

@Suite("The least delay of each slice of time")
struct LeastDelayTests {
  @Test func `A slice that is complete tells its least delay`() {
    var least = LeastDelay(slice: 1000)
    #expect(least.saw(0, now: 30) == nil)
    #expect(least.saw(100, now: 105) == nil)
    #expect(least.saw(200, now: 290) == nil)
    #expect(least.saw(1029, now: 1029) == nil, "its last nanosecond")
    #expect(least.saw(1000, now: 1030) == 0)
  }

  @Test func `The sample that completes a slice belongs to the next one`() {
    var least = LeastDelay(slice: 1000)
    _ = least.saw(0, now: 50)
    #expect(least.saw(1047, now: 1050) == 50)
    #expect(least.saw(2000, now: 2049) == nil)
    #expect(least.saw(2000, now: 2050) == 3)
    #expect(least.saw(9000, now: 9999) == 50)
  }

  @Test func `A publisher's clock that is ahead has a negative delay`() {
    var least = LeastDelay(slice: 10)
    _ = least.saw(5000, now: 0)
    _ = least.saw(4000, now: 5)
    #expect(least.saw(0, now: 10) == -5000)
  }

  @Test func `Times that wrap do not trap`() {
    var least = LeastDelay(slice: 10)
    _ = least.saw(.min, now: .max)
    _ = least.saw(.max, now: .min)
    #expect(least.slice == 10)
  }
}
