internal import Synchronization

/// Passes the first error of a thread to the code that waits for it.
package final class FirstError: Sendable {
  private let failure = Mutex<(any Error)?>(nil)

  package init() {}

  /// Runs the work and keeps the first error.
  package func keep(_ work: () throws -> Void) {
    do {
      try work()
    } catch {
      failure.withLock { if $0 == nil { $0 = error } }
    }
  }

  /// Throws the kept error.
  package func get() throws {
    if let error = failure.withLock({ $0 }) { throw error }
  }
}
