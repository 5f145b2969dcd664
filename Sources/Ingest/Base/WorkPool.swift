internal import Glibc
internal import NIOCore
package import NIOPosix
internal import Synchronization

/// A bounded number of threads for queues of work. It has as many threads as its queues may use together, so a queue whose
/// disk does not respond takes no thread from the others. The threads end with the last queue.
package final class WorkPool: Sendable {
  fileprivate let pool: NIOThreadPool
  private let free: Mutex<Int>

  package init(threads: Int) {
    pool = NIOThreadPool(numberOfThreads: threads)
    free = Mutex(threads)
    pool.start()
  }

  deinit {
    pool.shutdownGracefully { _ in }
  }

  /// A queue with that many of the threads. They have its name in lists of threads while they work for it: at most 15 bytes.
  package func queue(_ name: String, limit: Int = 1) -> WorkQueue {
    free.withLock { free in
      precondition(limit <= free, "\(name) would take threads from other queues")
      free -= limit
    }
    return WorkQueue(name, limit: limit, of: self)
  }
}

/// Work of one kind: at most `limit` pieces at a time, begun in the order in which they came.
package final class WorkQueue: WorkThreads {
  private struct State {
    var waiting = CircularBuffer<@Sendable (NIOThreadPool.WorkItemState) -> Void>()
    var running = 0
  }

  private let name: String
  private let limit: Int
  private let threads: WorkPool
  private let state = Mutex(State())

  fileprivate init(_ name: String, limit: Int, of threads: WorkPool) {
    self.name = name
    self.limit = limit
    self.threads = threads
  }

  /// A queue with threads of its own.
  package convenience init(_ name: String, threads: Int = 1) {
    self.init(name, limit: threads, of: WorkPool(threads: threads))
  }

  package func submit(_ body: @escaping @Sendable (NIOThreadPool.WorkItemState) -> Void) {
    let begins = state.withLock { state in
      state.waiting.append(body)
      guard state.running < limit else { return false }
      state.running += 1
      return true
    }
    if begins { threads.pool.submit(run) }
  }

  /// Does the oldest piece. The next is handed to the pool, which knows whether its threads have ended.
  private func run(_ pool: NIOThreadPool.WorkItemState) {
    pthread_setname_np(pthread_self(), name)
    state.withLock { $0.waiting.popFirst() }?(pool)
    let isMore = state.withLock { state in
      if state.waiting.isEmpty { state.running -= 1 }
      return !state.waiting.isEmpty
    }
    if isMore { threads.pool.submit(run) }
  }
}
