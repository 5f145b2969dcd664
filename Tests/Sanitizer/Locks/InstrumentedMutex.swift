internal import Glibc

/// A mutex that Thread Sanitizer sees. `Synchronization.Mutex` waits in the kernel by a call of its own when it is taken, so the
/// sanitizer takes what it protects for a race.
public struct InstrumentedMutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
  private let handle: UnsafeMutablePointer<pthread_mutex_t>
  private let value: UnsafeMutablePointer<Value>

  public init(_ initial: consuming sending Value) {
    handle = .allocate(capacity: 1)
    handle.initialize(to: pthread_mutex_t())
    precondition(pthread_mutex_init(handle, nil) == 0)
    value = .allocate(capacity: 1)
    value.initialize(to: initial)
  }

  deinit {
    value.deinitialize(count: 1)
    value.deallocate()
    pthread_mutex_destroy(handle)
    handle.deallocate()
  }

  public borrowing func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    pthread_mutex_lock(handle)
    defer { pthread_mutex_unlock(handle) }
    return try body(&value.pointee)
  }
}
