internal import Synchronization

/// A key frame that is asked for: by rungs that can begin with one, by viewers who wait for the first segment's end, by
/// people over the API. However many ask, one is made for all of them, and not sooner than half a second after the last that
/// was asked for: key frames are several times as large as other pictures.
final class KeyFrameRequest: Sendable {
  /// Nanoseconds.
  static let shortestDistance: Int64 = 500_000_000

  private struct State {
    var isWanted = false
    /// When the last one was made.
    var granted: Int64?
  }

  private let state = Mutex(State())

  init() {}

  /// From any thread.
  func ask() { state.withLock { $0.isWanted = true } }

  /// Whether the next picture is to be one; a wish that comes too soon waits for a later picture.
  ///
  /// - Parameter now: monotonic nanoseconds.
  func take(now: Int64) -> Bool {
    state.withLock { state in
      guard state.isWanted, state.granted.map({ now &- $0 >= Self.shortestDistance }) ?? true else { return false }
      state = State(isWanted: false, granted: now)
      return true
    }
  }
}
