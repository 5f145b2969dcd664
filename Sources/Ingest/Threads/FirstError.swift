internal import Synchronization

/// Carries what work on a thread threw to whoever waits for it.
final class FirstError: Sendable {
  private let failure = Mutex<(any Error)?>(nil)

  /// Does the work; the first failure is kept.
  func keep(_ work: () throws -> Void) {
    do {
      try work()
    } catch {
      failure.withLock { if $0 == nil { $0 = error } }
    }
  }

  /// Throws what the work threw.
  func get() throws {
    if let error = failure.withLock({ $0 }) { throw error }
  }
}
