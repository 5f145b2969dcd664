internal import Glibc

/// A count that threads wait on.
final class Semaphore: Sendable {
  private nonisolated(unsafe) let memory: UnsafeMutablePointer<sem_t>

  init() {
    memory = .allocate(capacity: 1)
    sem_init(memory, 0, 0)
  }

  deinit {
    sem_destroy(memory)
    memory.deallocate()
  }

  func post() { sem_post(memory) }

  /// Returns also when a signal interrupts it: whoever waits looks again.
  func wait() { sem_wait(memory) }

  /// The same, for so long at most.
  func wait(nanoseconds: Int64) {
    var end = timespec()
    clock_gettime(CLOCK_MONOTONIC, &end)
    let total = Int64(end.tv_nsec) &+ max(0, nanoseconds)
    end.tv_sec += Int(total / 1_000_000_000)
    end.tv_nsec = Int(total % 1_000_000_000)
    sem_clockwait(memory, CLOCK_MONOTONIC, &end)
  }
}
