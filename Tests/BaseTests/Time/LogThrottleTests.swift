@testable import Base
import Support
import Testing

@Suite struct LogThrottleTests {
  @Test func theFirstFewAreToldAndThenNoMoreUntilAWhileHasPassed() {
    var told = LogThrottle()
    for _ in 0..<LogThrottle.burst { #expect(told.tells(now: 7) == "") }
    #expect(told.tells(now: 8) == nil)
    #expect(told.tells(now: 7 + LogThrottle.span - 1) == nil)
    #expect(told.tells(now: 7 + LogThrottle.span) == " (2 earlier changes were not logged)")
    #expect(told.tells(now: 7 + LogThrottle.span) == "")
  }
}
