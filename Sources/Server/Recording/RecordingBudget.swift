internal import Synchronization

/// Bytes of fragments that may wait for the disk, of all recordings together. They are kept in memory beyond the live
/// windows until they are written.
final class RecordingBudget: Sendable {
  let limit: Int
  private let used = Atomic<Int>(0)

  init(limit: Int) {
    self.limit = limit
  }

  /// False when there is no room for so many bytes.
  func take(_ count: Int) -> Bool {
    let (_, taken) = used.add(count, ordering: .relaxed)
    if taken <= limit { return true }
    give(count)
    return false
  }

  func give(_ count: Int) {
    used.subtract(count, ordering: .relaxed)
  }

  /// Bytes that wait.
  var waiting: Int { used.load(ordering: .relaxed) }

  /// So little waits that it makes sense to begin again.
  var isRelaxed: Bool { used.load(ordering: .relaxed) <= limit / 2 }
}
