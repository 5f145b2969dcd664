import Base
import Glibc
import NIOPosix
import Support
import Synchronization
import Testing

@Suite struct WorkQueueTests {
  @Test func `A queue with one thread does its work in order`() async throws {
    let queue = WorkQueue("test")
    let done = Mutex<[Int]>([])
    for number in 0..<100 { queue.submit { _ in done.withLock { $0.append(number) } } }
    try await queue.runIfActive {}
    #expect(done.withLock { $0 } == Array(0..<100))
  }

  @Test func `A queue never has more threads than its limit`() async throws {
    let pool = WorkPool(threads: 4)
    let queue = pool.queue("test", limit: 3)
    let counts = Mutex((now: 0, most: 0))
    for _ in 0..<60 {
      queue.submit { _ in
        counts.withLock {
          $0.now += 1
          $0.most = max($0.most, $0.now)
        }
        usleep(2000)
        counts.withLock { $0.now -= 1 }
      }
    }
    for _ in 0..<500 where counts.withLock({ $0.now }) > 0 { try await Task.sleep(for: .milliseconds(10)) }
    for _ in 0..<3 { _ = try await queue.runIfActive { usleep(2000) } }
    #expect(counts.withLock { $0.most } == 3)
  }

  @Test func `A queue that is blocked delays no other of its pool`() async throws {
    let pool = WorkPool(threads: 3)
    let (stuck, free) = (pool.queue("stuck", limit: 2), pool.queue("free"))
    let ends = try (0..<4).map { _ in try blockThread(of: stuck) }
    for _ in 0..<10 { #expect(try await free.runIfActive { 1 } == 1) }
    for end in ends { end() }
    #expect(try await stuck.runIfActive { 2 } == 2)
  }

  @Test func `A thread has the name of the queue that it works for`() async throws {
    let pool = WorkPool(threads: 2)
    for name in ["weir-one", "weir-two"] {
      let found = try await pool.queue(name).runIfActive { () -> String in
        var bytes = [UInt8](repeating: 0, count: 16)
        bytes.withUnsafeMutableBytes { room in
          _ = room.baseAddress.map { pthread_getname_np(pthread_self(), $0.assumingMemoryBound(to: CChar.self), 16) }
        }
        return String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      #expect(found == name)
    }
  }

  @Test func `Work is told when threads have ended`() async throws {
    let threads = NIOThreadPool(numberOfThreads: 1)
    threads.start()
    let work: any WorkThreads = threads
    #expect(try await work.runIfActive { 1 } == 1)
    try await threads.shutdownGracefully()
    await #expect(throws: (any Error).self) { try await work.runIfActive { 1 } }
  }
}
