internal import Synchronization

/// Bounds the bytes of segments that have left their windows and are still in memory because somebody sends them. Where
/// there are more, those that left first are called in: connections that send them end (`SharedFile.isCalledIn`). For
/// recordings, which have a budget of their own (`RecordingBudget`), that means nothing.
package final class LeftoverBudget: Sendable {
  private struct State {
    /// Leftovers by the order in which they left their windows, but for those that were called in.
    var leftovers: [Int: (tenure: SegmentTenure, bytes: Int)] = [:]
    /// None before it is among them.
    var oldest = 0
    var next = 0
    var bytes = 0
  }

  /// Why a viewer is cut.
  package static let reason = "what it has not taken left its window too long ago"

  /// In bytes.
  package let limit: Int
  private let state = Mutex(State())

  package init(limit: Int) {
    self.limit = limit
  }

  /// Bytes of leftovers that are not called in.
  package var bytes: Int { state.withLock { $0.bytes } }

  /// A segment has left its window and has readers. Returns its number among those that have.
  package func add(_ tenure: SegmentTenure, bytes: Int) -> Int {
    let (number, late) = state.withLock { state in
      let number = state.next
      state.next += 1
      state.leftovers[number] = (tenure, bytes)
      state.bytes += bytes
      var late: [SegmentTenure] = []
      while state.bytes > limit, state.oldest < state.next {
        if let leftover = state.leftovers.removeValue(forKey: state.oldest) {
          state.bytes -= leftover.bytes
          late.append(leftover.tenure)
        }
        state.oldest += 1
      }
      return (number, late)
    }
    for tenure in late { tenure.callIn() }
    return number
  }

  /// Nobody reads that one any more.
  package func remove(_ number: Int) {
    state.withLock { state in
      guard let leftover = state.leftovers.removeValue(forKey: number) else { return }
      state.bytes -= leftover.bytes
    }
  }
}
