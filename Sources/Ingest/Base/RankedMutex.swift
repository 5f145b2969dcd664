internal import Glibc
public import Synchronization

/// The order of nested locks. A thread that holds a lock takes only locks further down in this list. A lock without a rank
/// is taken last, and no lock is taken under it.
public enum LockRank: UInt, Sendable {
  case source, output, sourceRecording
  /// Protects work with files: of a recording, of retention, of a folder of segments.
  case recording
  /// Protects the table that maps streams to their recordings.
  case followed
  case registry, stream
  /// Protects the table of recorders.
  case recorders
  /// Protects a queue of work for a disk.
  case queue
  case archive, programme, replay
  case budget
  /// Protects whether a segment's memory is still in a window. Taken wherever the last reference to one goes.
  case tenure

  /// Records that this thread takes the lock. False when the order forbids it.
  public func enter() -> Bool {
    let held = Self.held
    guard held >> rawValue == 0 else { return false }
    Self.held = held | 1 << rawValue
    return true
  }

  public func leave() -> Bool {
    Self.held &= ~(1 << rawValue)
    return true
  }

  /// The ranks that this thread holds, one bit each.
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

/// A mutex with a rank. Debug builds check the order. Public, since the compiler inlines nothing of less access in other
/// modules, and what it does not inline looks up the metadata of its types at each call.
public struct RankedMutex<Value: ~Copyable>: ~Copyable, Sendable {
  @usableFromInline let rank: LockRank
  @usableFromInline let mutex: Mutex<Value>

  @inlinable public init(_ rank: LockRank, _ value: consuming sending Value) {
    self.rank = rank
    mutex = Mutex(value)
  }

  @inlinable @inline(__always) public borrowing func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    assert(rank.enter(), "\(rank) is locked out of order")
    defer { assert(rank.leave()) }
    return try mutex.withLock(body)
  }
}
