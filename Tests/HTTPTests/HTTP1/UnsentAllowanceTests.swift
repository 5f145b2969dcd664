@testable import HTTP
import Testing

@Suite struct UnsentAllowanceTests {
  @Test func itGrowsAsTheClientTakesWhatItHasAndShrinksWhenItTakesNothing() {
    var unsent = UnsentAllowance()
    let taken = [255, 1, 256, 1 << 10, 8 << 10]
    let sizes = taken.map { kibibytes in
      _ = unsent.took(kibibytes << 10, at: 1, limit: UnsentAllowance.most)
      return unsent.bytes >> 10
    }
    #expect(sizes == [32, 64, 128, 256, 256])
    let shrank = (unsent.stalled(), unsent.stalled())
    #expect(shrank == (true, false) && unsent.bytes == UnsentAllowance.first)
  }

  @Test func aClientThatTakesLittleAtATimeHasLittle() {
    var unsent = UnsentAllowance()
    for tick in 1...100 { _ = unsent.took(200 << 10, at: tick, limit: UnsentAllowance.most) }
    #expect(unsent.bytes == UnsentAllowance.first)
  }

  @Test func whereLittleMemoryIsLeftItGrowsLess() {
    var unsent = UnsentAllowance()
    for _ in 0..<20 { _ = unsent.took(8 << 20, at: 1, limit: SocketWriter.tightUnsentBytes) }
    #expect(unsent.bytes == SocketWriter.tightUnsentBytes)
  }
}
