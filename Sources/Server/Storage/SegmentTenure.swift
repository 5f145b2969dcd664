internal import Synchronization

/// The time for which a segment's memory is taken: first by its window, then by those who have not sent it to its end.
package final class SegmentTenure: Sendable {
  /// Held by windows, and by nobody who sends: with the last of them the segment has left its window.
  final class Window: Sendable {
    private let tenure: SegmentTenure

    init(_ tenure: SegmentTenure) {
      self.tenure = tenure
    }

    deinit { tenure.leaveWindow() }
  }

  private enum Phase {
    case inWindow
    /// Its number in the budget.
    case leftover(Int)
    case over
  }

  private let budget: LeftoverBudget
  private let bytes = Atomic<Int>(0)
  private let phase = Mutex(Phase.inWindow)
  private let calledIn = Atomic<Bool>(false)

  init(budget: LeftoverBudget) {
    self.budget = budget
  }

  /// Whoever sends the segment is to end its connection.
  package var isCalledIn: Bool { calledIn.load(ordering: .relaxed) }

  func callIn() { calledIn.store(true, ordering: .relaxed) }

  /// The segment takes so many bytes now.
  func grow(to count: Int) { bytes.store(count, ordering: .relaxed) }

  private func leaveWindow() {
    phase.withLock { phase in
      guard case .inWindow = phase else { return }
      phase = .leftover(budget.add(self, bytes: bytes.load(ordering: .relaxed)))
    }
  }

  /// The last reader is gone.
  package func end() {
    phase.withLock { phase in
      if case .leftover(let number) = phase { budget.remove(number) }
      phase = .over
    }
  }
}
