internal import Glibc

/// A counting semaphore.
package final class CountingSemaphore: Sendable {
  private nonisolated(unsafe) let memory: UnsafeMutablePointer<sem_t>

  package init() {
    memory = .allocate(capacity: 1)
    sem_init(memory, 0, 0)
  }

  deinit {
    sem_destroy(memory)
    memory.deallocate()
  }

  package func post() { sem_post(memory) }

  /// Also returns when a signal interrupts it, so the caller must check its condition again.
  package func wait() { sem_wait(memory) }

  /// Waits at most this long.
  package func wait(nanoseconds: Int64) {
    var end = timespec()
    clock_gettime(CLOCK_MONOTONIC, &end)
    let total = Int64(end.tv_nsec) &+ max(0, nanoseconds)
    end.tv_sec += Int(total / 1_000_000_000)
    end.tv_nsec = Int(total % 1_000_000_000)
    sem_clockwait(memory, CLOCK_MONOTONIC, &end)
  }
}
