import Base
import Testing

@Suite struct RankedMutexTests {
  @Test func locksAreTakenDownwardsAlone() {
    #expect(LockRank.registry.enter() && LockRank.stream.enter() && LockRank.queue.enter())
    #expect(!LockRank.registry.enter() && !LockRank.stream.enter() && !LockRank.recorders.enter())
    #expect(!LockRank.queue.enter(), "not another of the same kind either")
    #expect(LockRank.queue.leave() && LockRank.recorders.enter() && LockRank.recorders.leave())
    #expect(LockRank.stream.leave() && LockRank.registry.leave() && LockRank.source.enter() && LockRank.source.leave())
  }

  @Test func whatIsLockedIsChanged() throws {
    let count = RankedMutex(.stream, 1)
    #expect(
      count.withLock { count in
        count += 1
        return count
      } == 2)
  }
}
