internal import Glibc

/// A bounded queue between threads, in order. `give` blocks while it is full, `take` while it is empty. Only for
/// threads of the worker, because it blocks.
package final class BoundedQueue<Element: Sendable>: @unchecked Sendable {
  private let capacity: Int
  private let lock: UnsafeMutablePointer<pthread_mutex_t>
  private let changed: UnsafeMutablePointer<pthread_cond_t>
  private var elements: [Element] = []
  private var isClosed = false

  package init(capacity: Int) {
    self.capacity = max(1, capacity)
    lock = .allocate(capacity: 1)
    changed = .allocate(capacity: 1)
    pthread_mutex_init(lock, nil)
    pthread_cond_init(changed, nil)
  }

  deinit {
    pthread_cond_destroy(changed)
    pthread_mutex_destroy(lock)
    changed.deallocate()
    lock.deallocate()
  }

  /// Appends an element. False if the queue is closed.
  @discardableResult
  package func give(_ element: Element) -> Bool {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    while elements.count >= capacity, !isClosed { pthread_cond_wait(changed, lock) }
    guard !isClosed else { return false }
    elements.append(element)
    pthread_cond_broadcast(changed)
    return true
  }

  /// The oldest element. Nil once the queue is closed and empty.
  package func take() -> Element? {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    while elements.isEmpty, !isClosed { pthread_cond_wait(changed, lock) }
    guard !elements.isEmpty else { return nil }
    let first = elements.removeFirst()
    pthread_cond_broadcast(changed)
    return first
  }

  /// Closes the queue: no element can be added, and the rest can still be taken.
  package func close() {
    pthread_mutex_lock(lock)
    isClosed = true
    pthread_cond_broadcast(changed)
    pthread_mutex_unlock(lock)
  }
}
