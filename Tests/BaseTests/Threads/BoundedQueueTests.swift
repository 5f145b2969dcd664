import Base
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct BoundedQueueTests {
  @Test func `Elements come out in order, and the rest after the queue was closed`() {
    let queue = BoundedQueue<Int>(capacity: 3)
    for number in 1...3 { #expect(queue.give(number)) }
    #expect(queue.take() == 1)
    queue.close()
    #expect(!queue.give(4))
    #expect(queue.take() == 2 && queue.take() == 3 && queue.take() == nil)
  }

  @Test func `A full queue holds up who gives, until one is taken`() async throws {
    let queue = BoundedQueue<Int>(capacity: 2)
    let given = Atomic(0)
    let done = CountingSemaphore()
    try DedicatedThread.start(named: "weir-test") {
      for number in 1...4 where queue.give(number) { given.add(1, ordering: .sequentiallyConsistent) }
      done.post()
    }
    while given.load(ordering: .sequentiallyConsistent) < 2 { try await Task.sleep(for: .milliseconds(5)) }
    try await Task.sleep(for: .milliseconds(50))
    #expect(given.load(ordering: .sequentiallyConsistent) == 2)
    #expect(queue.take() == 1 && queue.take() == 2)
    while given.load(ordering: .sequentiallyConsistent) < 4 { try await Task.sleep(for: .milliseconds(5)) }
    #expect(queue.take() == 3 && queue.take() == 4)
    done.wait()
  }

  @Test func `A close wakes who waits for an element`() async throws {
    let queue = BoundedQueue<Int>(capacity: 1)
    let taken = Mutex<[Int?]>([])
    try DedicatedThread.start(named: "weir-test") {
      let element = queue.take()
      taken.withLock { $0.append(element) }
    }
    try await Task.sleep(for: .milliseconds(20))
    #expect(taken.withLock { $0.isEmpty })
    queue.close()
    while taken.withLock({ $0.isEmpty }) { try await Task.sleep(for: .milliseconds(5)) }
    #expect(taken.withLock { $0 } == [nil])
  }
}
