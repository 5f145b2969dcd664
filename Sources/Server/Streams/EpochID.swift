internal import Synchronization

/// Makes names of epochs: the wall-clock millisecond in base 36, unique within a process.
final class EpochID: Sendable {
  private let last = Mutex<Int64>(0)

  /// `wallNanoseconds` are since 1970.
  func next(wallNanoseconds: Int64) -> String {
    let value = last.withLock { last in
      last = max(wallNanoseconds / 1_000_000, last + 1)
      return last
    }
    return String(value, radix: 36)
  }
}
