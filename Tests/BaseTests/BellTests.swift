import Base
import NIOCore
import Synchronization
import Testing

@Suite struct BellTests {
  private final class Count: Sendable {
    let number = Atomic(0)
  }

  @Test(.timeLimit(.minutes(1))) func whoWaitsLooksAgainAtEachRing() async throws {
    let bell = Bell()
    let count = Count()
    async let isMet = bell.wait(patience: .seconds(50)) { count.number.load(ordering: .relaxed) == 3 }.get()
    for _ in 0..<3 {
      try? await Task.sleep(for: .milliseconds(5))
      count.number.add(1, ordering: .relaxed)
      bell.ring()
    }
    #expect(try await isMet)
    #expect(try await bell.wait(patience: .seconds(50)) { true }.get())
    #expect(try await !bell.wait(patience: .milliseconds(5)) { false }.get())
  }

  /// Nobody rings between its first look and the end of its patience.
  @Test(.timeLimit(.minutes(1))) func whatHoldsWhenPatienceEndsIsTold() async throws {
    let (bell, looks) = (Bell(), Count())
    #expect(
      try await bell.wait(patience: .milliseconds(5)) { looks.number.add(1, ordering: .relaxed).newValue > 1 }.get())
    #expect(looks.number.load(ordering: .relaxed) == 2)
  }

  @Test(.timeLimit(.minutes(1))) func aFlagIsSetOnce() async {
    let flag = Latch()
    #expect(await flag.wait(patience: .milliseconds(5)) == false)
    async let isSet = flag.wait(patience: .seconds(50))
    flag.set()
    flag.set()
    #expect(await isSet)
  }
}
