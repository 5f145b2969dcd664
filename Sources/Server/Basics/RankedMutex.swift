internal import Glibc
package import Synchronization

/// The order of locks that are held together: who holds one takes only those that stand below it. A lock that is not named
/// here is taken last, and nothing is taken under it.
package enum LockRank: UInt, Sendable {
  case source, output, take
  /// What works with a recording's file.
  case recording
  /// Where recordings find streams.
  case followed
  case registry, stream
  /// Who is recorded.
  case recorders
  /// Of what waits for a disk.
  case queue
  case archive, programme, replay
  case budget

  /// Takes note of a lock of this thread. False where it may not be taken now.
  package func enter() -> Bool {
    let held = Self.held
    guard held >> rawValue == 0 else { return false }
    Self.held = held | 1 << rawValue
    return true
  }

  package func leave() -> Bool {
    Self.held &= ~(1 << rawValue)
    return true
  }

  /// What this thread holds, a bit for each rank.
  private static var held: UInt {
    get { UInt(bitPattern: pthread_getspecific(key)) }
    set { pthread_setspecific(key, UnsafeRawPointer(bitPattern: newValue)) }
  }

  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    pthread_key_create(&key, nil)
    return key
  }()
}

/// A lock that has its place in the order of locks, which debug builds look after.
package struct RankedMutex<Value: ~Copyable>: ~Copyable, Sendable {
  @usableFromInline let rank: LockRank
  @usableFromInline let mutex: Mutex<Value>

  @inlinable package init(_ rank: LockRank, _ value: consuming sending Value) {
    self.rank = rank
    mutex = Mutex(value)
  }

  @inlinable package borrowing func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    assert(rank.enter(), "\(rank) is locked out of order")
    defer { assert(rank.leave()) }
    return try mutex.withLock(body)
  }
}
