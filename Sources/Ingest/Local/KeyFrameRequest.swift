internal import Base
internal import Synchronization

/// Requests for a key frame. They come from rungs that can begin with one, from viewers that wait for the end of the
/// first segment, and from the API. One key frame serves all requests, at least half a second after the last requested
/// one. Key frames are several times as large as other frames.
final class KeyFrameRequest: Sendable {
  /// Nanoseconds.
  static let shortestDistance: Int64 = 500_000_000

  private struct State {
    var isWanted = false
    /// Time of the last requested key frame.
    var granted: MonotonicTime?
  }

  private let state = Mutex(State())

  init() {}

  /// From any thread.
  func ask() { state.withLock { $0.isWanted = true } }

  /// Whether the next frame must be a key frame. A request that comes too soon waits for a later frame.
  func take(now: MonotonicTime) -> Bool {
    state.withLock { state in
      guard state.isWanted, state.granted.map({ now &- $0 >= Self.shortestDistance }) ?? true else { return false }
      state = State(isWanted: false, granted: now)
      return true
    }
  }
}
