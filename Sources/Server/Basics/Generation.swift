internal import Synchronization

/// Rises with every change of something, so that whoever keeps what was made of it knows when it is old. Anybody may
/// look at it, without a lock.
package final class Generation: Sendable {
  private let count = Atomic(0)

  package init() {}

  package var version: Int { count.load(ordering: .acquiring) }

  package func change() { count.wrappingAdd(1, ordering: .releasing) }
}
