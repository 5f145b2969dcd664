internal import Synchronization

/// Set once, by a thread that may wait for a disk for ever.
package final class PatientFlag: Sendable {
  private let value = Atomic(false)

  package init() {}

  var isSet: Bool { value.load(ordering: .acquiring) }

  package func set() {
    value.store(true, ordering: .releasing)
  }

  /// Whether it is set within `patience`.
  package func wait(patience: Duration) async -> Bool {
    let deadline = ContinuousClock.now + patience
    while !isSet, ContinuousClock.now < deadline { try? await Task.sleep(for: .milliseconds(2)) }
    return isSet
  }
}
