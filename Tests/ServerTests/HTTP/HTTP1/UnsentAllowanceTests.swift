import Testing

@testable import HTTP

@Suite struct UnsentAllowanceTests {
  @Test func itGrowsAsTheClientTakesWhatItHasAndShrinksWhenItTakesNothing() {
    var unsent = UnsentAllowance()
    #expect(unsent.bytes == 32 << 10)
    #expect(!unsent.took(255 << 10, at: 1, limit: UnsentAllowance.most))
    #expect(unsent.took(1 << 10, at: 1, limit: UnsentAllowance.most))
    #expect(unsent.bytes == 64 << 10)
    #expect(unsent.took(256 << 10, at: 1, limit: UnsentAllowance.most))
    #expect(unsent.took(1 << 20, at: 1, limit: UnsentAllowance.most))
    #expect(!unsent.took(8 << 20, at: 1, limit: UnsentAllowance.most))
    #expect(unsent.bytes == UnsentAllowance.most)
    #expect(unsent.stalled() && unsent.bytes == UnsentAllowance.first)
    #expect(!unsent.stalled())
  }

  @Test func aClientThatTakesLittleAtATimeHasLittle() {
    var unsent = UnsentAllowance()
    for tick in 1...100 { #expect(!unsent.took(200 << 10, at: tick, limit: UnsentAllowance.most)) }
    #expect(unsent.bytes == UnsentAllowance.first)
  }

  @Test func whereLittleMemoryIsLeftItGrowsLess() {
    var unsent = UnsentAllowance()
    for _ in 0..<20 { _ = unsent.took(8 << 20, at: 1, limit: SocketWriter.tightUnsentBytes) }
    #expect(unsent.bytes == SocketWriter.tightUnsentBytes)
  }
}
