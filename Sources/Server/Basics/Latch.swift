internal import NIOCore
internal import Synchronization

/// Set once, by a thread that may wait for a disk for ever.
package final class Latch: Sendable {
  private let value = Atomic(false)
  private let bell = Bell()

  package init() {}

  package var isSet: Bool { value.load(ordering: .acquiring) }

  package func set() {
    value.store(true, ordering: .releasing)
    bell.ring()
  }

  /// Whether it is set within `patience`.
  package func wait(patience: Duration) async -> Bool {
    (try? await bell.wait(patience: TimeAmount(patience)) { self.isSet }.get()) ?? isSet
  }
}
