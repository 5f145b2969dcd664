import Testing

@testable import Server

@Suite struct FreedMemoryTests {
  /// How many looks it takes, 100 at most.
  private func looks(_ memory: inout FreedMemory, connections: Int) -> Int? {
    (1...100).first { _ in memory.isDue(connections: connections) }
  }

  @Test func `memory is given back once, 10 s after a crowd has left`() {
    var memory = FreedMemory()
    #expect(looks(&memory, connections: 10_000) == nil)
    #expect(looks(&memory, connections: 3) == FreedMemory.looks + 1)
    #expect(looks(&memory, connections: 3) == nil)
  }

  @Test(arguments: [(10_000, 5000, true), (10_000, 5001, false), (500, 0, true), (499, 0, false), (999, 499, true)])
  func `half of all must have left, and 500`(_ most: Int, _ left: Int, _ isDue: Bool) {
    var memory = FreedMemory()
    _ = memory.isDue(connections: most)
    #expect((looks(&memory, connections: left) != nil) == isDue)
  }

  @Test func `who comes back meanwhile begins the wait anew`() {
    var memory = FreedMemory()
    _ = memory.isDue(connections: 1000)
    let early = (0..<FreedMemory.looks).contains { _ in memory.isDue(connections: 0) }
    let back = memory.isDue(connections: 1000)
    #expect(!early && !back)
    #expect(looks(&memory, connections: 0) == FreedMemory.looks + 1)
  }
}
