internal import Synchronization

/// The server's room for workers, counted where it counts descriptors.
package struct WorkerRoom: Sendable {
  /// Takes the room of one worker and its transcoder. False if there is none.
  package let take: @Sendable () -> Bool
  package let giveBack: @Sendable () -> Void

  /// Nothing is counted.
  package static let unlimited = WorkerRoom(take: { true }, giveBack: {})

  package init(take: @escaping @Sendable () -> Bool, giveBack: @escaping @Sendable () -> Void) {
    self.take = take
    self.giveBack = giveBack
  }

  /// The same room, for at most so many workers at a time.
  package func limited(to most: Int) -> WorkerRoom {
    let taken = Taken()
    return WorkerRoom {
      let isFree = taken.count.withLock { count in
        guard count < most else { return false }
        count += 1
        return true
      }
      guard isFree else { return false }
      if take() { return true }
      taken.count.withLock { $0 -= 1 }
      return false
    } giveBack: {
      taken.count.withLock { $0 -= 1 }
      giveBack()
    }
  }

  private final class Taken: Sendable {
    let count = Mutex(0)
  }
}
