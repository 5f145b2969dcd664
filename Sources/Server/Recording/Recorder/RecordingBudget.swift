internal import Synchronization

/// Bytes that may be kept in memory for the disk, of all recordings together: what waits, and whatever of its segments
/// no live window has any more.
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

  /// Gives back so many bytes; less than none takes them, whether there is room or not.
  func give(_ count: Int) {
    used.subtract(count, ordering: .relaxed)
  }

  /// Bytes that are kept.
  var waiting: Int { used.load(ordering: .relaxed) }

  /// More is kept than may be.
  var isOver: Bool { used.load(ordering: .relaxed) > limit }

  /// So little is kept that it makes sense to begin again.
  var isRelaxed: Bool { used.load(ordering: .relaxed) <= limit / 2 }
}
