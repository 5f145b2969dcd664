import Base
import Testing

@Suite struct FairShareTests {
  /// How many places each address in turn gets.
  private func fill(_ all: Int, least: Int, addresses: Int) -> [Int] {
    var taken = 0
    return (0..<addresses).map { _ in
      var own = 0
      while FairShare.allows(own: own, taken: taken, of: all, least: least) { (own, taken) = (own + 1, taken + 1) }
      return own
    }
  }

  @Test func `an address gets half of what is left, and eight do not get all of 400`() {
    #expect(fill(400, least: 0, addresses: 8) == [200, 100, 50, 25, 12, 6, 3, 2])
    #expect(fill(400, least: 8, addresses: 8).reduce(0, +) < 400)
  }

  @Test func `one site has those that it needs, and of few places others have some`() {
    #expect(fill(400, least: 8, addresses: 6) == [200, 100, 50, 25, 12, 6])
    #expect(fill(40, least: 8, addresses: 3) == [20, 10, 8])
    #expect(fill(16, least: 8, addresses: 3) == [8, 4, 3])
    #expect(fill(8, least: 8, addresses: 4) == [4, 2, 1, 1])
    #expect(fill(1, least: 8, addresses: 2) == [1, 0])
  }

  @Test func `what an address may have more leaves others as much, and it may have too much by now`() {
    #expect(FairShare.room(own: 0, taken: 0, of: 100) == 50 && FairShare.room(own: 50, taken: 50, of: 100) == 0)
    #expect(FairShare.room(own: 10, taken: 30, of: 100) == 30 && FairShare.room(own: 60, taken: 60, of: 100) == -10)
  }

  @Test func `where more are taken than there may be now, nobody gets one`() {
    #expect(!FairShare.allows(own: 0, taken: 5, of: 4))
    #expect(!FairShare.allows(4, own: 0, taken: 2, of: 5) && FairShare.allows(3, own: 0, taken: 2, of: 5))
  }
}
