internal import Synchronization

/// Limits the bytes of segments that have left their windows but stay in memory, because connections still send them. Beyond
/// the limit the oldest are called in: the connections that send them close (`SharedFile.isCalledIn`). Recordings ignore this;
/// they have their own budget (`RecordingBudget`).
package final class LeftoverBudget: Sendable {
  private struct State {
    /// Leftovers that are not called in, by the order in which they left their windows.
    var leftovers: [Int: (tenure: SegmentTenure, bytes: Int)] = [:]
    /// No leftover has a lower number.
    var oldest = 0
    var next = 0
    var bytes = 0
  }

  /// The reason in the log for the end of a viewer's connection.
  package static let reason = "media that it has not read left the window too long ago"

  /// The most bytes.
  package let limit: Int
  private let state = Mutex(State())

  package init(limit: Int) {
    self.limit = limit
  }

  /// Bytes of leftovers that are not called in.
  package var bytes: Int { state.withLock { $0.bytes } }

  /// Adds a segment that left its window and still has readers. Returns its number.
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

  /// Removes a segment that has no readers any more.
  package func remove(_ number: Int) {
    state.withLock { state in
      guard let leftover = state.leftovers.removeValue(forKey: number) else { return }
      state.bytes -= leftover.bytes
    }
  }
}
