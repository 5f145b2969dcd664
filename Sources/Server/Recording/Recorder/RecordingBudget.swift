internal import Synchronization

/// Bytes that all recordings together may keep in memory for the disk: the waiting fragments, and the rest of their segments. The
/// rest counts once no live window contains the segment.
package final class RecordingBudget: Sendable {
  let limit: Int
  private let used = Atomic<Int>(0)

  package init(limit: Int) {
    self.limit = limit
  }

  /// Takes that many bytes. False if there is no room for them.
  func take(_ count: Int) -> Bool {
    let (_, taken) = used.add(count, ordering: .relaxed)
    if taken <= limit { return true }
    give(count)
    return false
  }

  /// Gives back that many bytes. A negative count takes bytes, whether there is room or not.
  func give(_ count: Int) {
    used.subtract(count, ordering: .relaxed)
  }

  /// Bytes in use.
  var waiting: Int { used.load(ordering: .relaxed) }

  /// More bytes are in use than the limit.
  var isOver: Bool { used.load(ordering: .relaxed) > limit }

  /// At most half of the limit is in use: recording can begin again.
  var isRelaxed: Bool { used.load(ordering: .relaxed) <= limit / 2 }
}
