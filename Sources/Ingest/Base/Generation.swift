internal import Synchronization

/// A counter that rises with every change, which shows whether a cached value is stale. Readable from any thread, without a
/// lock.
package final class Generation: Sendable {
  private let count = Atomic(0)

  package init() {}

  package var version: Int { count.load(ordering: .acquiring) }

  package func change() { count.wrappingAdd(1, ordering: .releasing) }
}
