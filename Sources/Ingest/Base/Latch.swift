internal import NIOCore
internal import Synchronization

/// A flag that is set once, by a thread that a disk may block without limit.
package final class Latch: Sendable {
  private let value = Atomic(false)
  private let bell = Bell()

  package init() {}

  package var isSet: Bool { value.load(ordering: .acquiring) }

  package func set() {
    value.store(true, ordering: .releasing)
    bell.ring()
  }

  /// True when the flag is set within `patience`.
  package func wait(patience: Duration) async -> Bool {
    (try? await bell.wait(patience: TimeAmount(patience)) { self.isSet }.get()) ?? isSet
  }
}
