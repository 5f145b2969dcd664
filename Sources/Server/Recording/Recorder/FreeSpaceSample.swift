internal import Base
internal import Synchronization

/// The free space that a disk reported last. Callers read it without waiting for the disk.
final class FreeSpaceSample: Sendable {
  private let last = Mutex<(freeBytes: Int64, at: MonotonicTime)?>(nil)

  func note(freeBytes: Int64, at: MonotonicTime) { last.withLock { $0 = (freeBytes, at) } }

  /// Nil before the disk was asked for the first time.
  var newest: (freeBytes: Int64, at: MonotonicTime)? { last.withLock { $0 } }
}
