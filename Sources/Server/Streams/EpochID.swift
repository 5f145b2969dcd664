internal import FMP4
internal import Synchronization

/// Makes names of epochs: the wall-clock millisecond in base 36, unique within a process.
final class EpochID: Sendable {
  private let last = Mutex<Int64>(0)

  func next(at time: WallTime) -> String {
    let value = last.withLock { last in
      last = max(time.milliseconds, last + 1)
      return last
    }
    return String(value, radix: 36)
  }
}
