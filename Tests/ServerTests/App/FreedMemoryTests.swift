@testable import Server
import Testing

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

  @Test(arguments: [
    (25_000, 15_000, true), (10_000, 8000, true), (10_000, 8001, false), (3000, 1500, true), (3000, 1501, false),
    (500, 0, true), (499, 0, false), (999, 499, true),
  ])
  func `2,000 must have left, or half of all and 500`(_ most: Int, _ left: Int, _ isDue: Bool) {
    var memory = FreedMemory()
    _ = memory.isDue(connections: most)
    #expect((looks(&memory, connections: left) != nil) == isDue)
  }

  /// Waves of viewers, each within a look.
  @Test func `it is not given back more often than every 40 s`() {
    var memory = FreedMemory()
    var times: [Int] = []
    for look in 0..<1000 where memory.isDue(connections: look / 25 % 2 == 0 ? 10_000 : 5000) { times.append(look) }
    let gaps = zip(times.dropFirst(), times).map { $0 - $1 }
    #expect(times.count > 5 && gaps.allSatisfy { $0 >= FreedMemory.pause })
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
