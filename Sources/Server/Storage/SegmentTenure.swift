internal import Base
internal import Synchronization

/// How long a segment's memory is in use: first by its window, then by connections that still send it.
package final class SegmentTenure: Sendable {
  /// Held by windows only, not by senders. When the last one is gone, the segment has left its window.
  final class Window: Sendable {
    private let tenure: SegmentTenure

    init(_ tenure: SegmentTenure) {
      self.tenure = tenure
    }

    deinit { tenure.leaveWindow() }
  }

  private enum Phase {
    case inWindow
    /// Left its window; its number in the budget.
    case leftover(Int)
    case over
  }

  private let budget: LeftoverBudget
  private let bytes = Atomic<Int>(0)
  private let phase = RankedMutex(.tenure, Phase.inWindow)
  private let calledIn = Atomic<Bool>(false)

  init(budget: LeftoverBudget) {
    self.budget = budget
  }

  /// Connections that send the segment must close.
  package var isCalledIn: Bool { calledIn.load(ordering: .relaxed) }

  func callIn() { calledIn.store(true, ordering: .relaxed) }

  /// Sets the size of the segment, in bytes.
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
