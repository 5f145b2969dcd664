import Testing

@testable import Ingest

@Suite struct SeldomToldTests {
  @Test func theFirstFewAreToldAndThenNoMoreUntilAWhileHasPassed() {
    var told = SeldomTold()
    for _ in 0..<SeldomTold.burst { #expect(told.tells(now: 7) == "") }
    #expect(told.tells(now: 8) == nil)
    #expect(told.tells(now: 7 + SeldomTold.span - 1) == nil)
    #expect(told.tells(now: 7 + SeldomTold.span) == " (2 changes before it were not told)")
    #expect(told.tells(now: 7 + SeldomTold.span) == "")
  }
}
