package import Basics
internal import Synchronization

/// The descriptor of one file that is read for viewers, in the budget from when it is taken until the file is closed.
package final class FileClaim: Sendable {
  private let descriptors: DescriptorBudget
  private let use: DescriptorBudget.FileUse
  private let isTaken = Mutex(false)

  package init(on descriptors: DescriptorBudget, for use: DescriptorBudget.FileUse) {
    self.descriptors = descriptors
    self.use = use
  }

  /// False where there is no room for it.
  package func take() -> Bool {
    isTaken.withLock { isTaken in
      if !isTaken { isTaken = descriptors.takeFile(use) }
      return isTaken
    }
  }

  /// It is open already, and counts whether there is room for it or not.
  package func note() {
    isTaken.withLock { isTaken in
      if !isTaken { descriptors.noteFile(use) }
      isTaken = true
    }
  }

  /// The file is closed.
  package func giveBack() {
    isTaken.withLock { isTaken in
      if isTaken { descriptors.giveBackFile(use) }
      isTaken = false
    }
  }
}
