internal import Synchronization

/// Rises with every change of something, so that whoever keeps what was made of it knows when it is old. Anybody may
/// look at it, without a lock.
final class ChangeStamp: Sendable {
  private let count = Atomic(0)

  var version: Int { count.load(ordering: .acquiring) }

  func change() { count.wrappingAdd(1, ordering: .releasing) }
}
