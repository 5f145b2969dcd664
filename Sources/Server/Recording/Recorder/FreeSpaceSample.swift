internal import Synchronization

/// What a disk last said of its free space, for those who must not wait for it.
final class FreeSpaceSample: Sendable {
  private let last = Mutex<(freeBytes: Int64, at: Int64)?>(nil)

  /// `at` in monotonic nanoseconds.
  func note(freeBytes: Int64, at: Int64) { last.withLock { $0 = (freeBytes, at) } }

  /// Nil before it has been asked.
  var newest: (freeBytes: Int64, at: Int64)? { last.withLock { $0 } }
}
