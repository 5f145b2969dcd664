package import FMP4
internal import Synchronization

/// The latest attempts of all hooks, for the API.
package final class HookDeliveries: Sendable {
  package struct Attempt: Sendable, Hashable {
    package var hook: String
    /// The event; nil for something that concerns several.
    package var event: Int64?
    package var kind: EventKind?
    /// From 1.
    package var number: Int
    package var at: WallTime
    package var milliseconds: Int64
    package var isDone: Bool
    /// `200`, `exit status 1`, `no answer within 5 s` …
    package var outcome: String
    /// When it is tried again.
    package var next: WallTime?
  }

  static let limit = 500

  private let attempts = Mutex<[Attempt]>([])

  func note(_ attempt: Attempt) {
    attempts.withLock { attempts in
      if attempts.count >= Self.limit { attempts.removeFirst(attempts.count - Self.limit + 1) }
      attempts.append(attempt)
    }
  }

  /// Oldest first.
  package var all: [Attempt] { attempts.withLock { $0 } }
}
