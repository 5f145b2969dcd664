internal import FMP4
internal import Ingest
internal import Synchronization

/// The latest attempts of all hooks, for the API.
final class HookDeliveries: Sendable {
  struct Attempt: Sendable, Hashable {
    var hook: String
    /// The event; nil for something that concerns several.
    var event: Int64?
    var kind: EventKind?
    /// From 1.
    var number: Int
    var at: WallTime
    var milliseconds: Int64
    var isDone: Bool
    /// `200`, `exit status 1`, `no answer within 5 s` …
    var outcome: String
    /// When it is tried again.
    var next: WallTime?
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
  var all: [Attempt] { attempts.withLock { $0 } }
}
