package import Base
internal import Synchronization

/// The budget's descriptor for one file that is open for viewers, from `take` until the file is closed.
package final class FileClaim: Sendable {
  private let descriptors: DescriptorBudget
  private let use: DescriptorBudget.FileUse
  private let isTaken = Mutex(false)

  package init(on descriptors: DescriptorBudget, for use: DescriptorBudget.FileUse) {
    self.descriptors = descriptors
    self.use = use
  }

  /// False when the budget has no descriptor left.
  package func take() -> Bool {
    isTaken.withLock { isTaken in
      if !isTaken { isTaken = descriptors.takeFile(use) }
      return isTaken
    }
  }

  /// Counts a file that is already open, even beyond the budget.
  package func note() {
    isTaken.withLock { isTaken in
      if !isTaken { descriptors.noteFile(use) }
      isTaken = true
    }
  }

  /// Gives the descriptor back after the file was closed.
  package func giveBack() {
    isTaken.withLock { isTaken in
      if isTaken { descriptors.giveBackFile(use) }
      isTaken = false
    }
  }
}
