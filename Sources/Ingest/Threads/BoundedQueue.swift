internal import Glibc

/// Hands things from one thread to another, in order and a few at a time: whoever gives waits while it is full, whoever
/// takes while it is empty. For threads of the worker alone: it blocks them.
final class BoundedQueue<Element: Sendable>: @unchecked Sendable {
  private let capacity: Int
  private let lock: UnsafeMutablePointer<pthread_mutex_t>
  private let changed: UnsafeMutablePointer<pthread_cond_t>
  private var elements: [Element] = []
  private var isClosed = false

  init(capacity: Int) {
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

  /// False when it is closed.
  @discardableResult
  func give(_ element: Element) -> Bool {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    while elements.count >= capacity, !isClosed { pthread_cond_wait(changed, lock) }
    guard !isClosed else { return false }
    elements.append(element)
    pthread_cond_broadcast(changed)
    return true
  }

  /// The oldest; nil once it is closed and empty.
  func take() -> Element? {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    while elements.isEmpty, !isClosed { pthread_cond_wait(changed, lock) }
    guard !elements.isEmpty else { return nil }
    let first = elements.removeFirst()
    pthread_cond_broadcast(changed)
    return first
  }

  /// Takes no more; what is inside can still be taken.
  func close() {
    pthread_mutex_lock(lock)
    isClosed = true
    pthread_cond_broadcast(changed)
    pthread_mutex_unlock(lock)
  }
}
