internal import Synchronization

/// Settings of a thread that may change while it runs.
final class RequestedSetting<Value: Sendable>: Sendable {
  struct Version: Sendable {
    var value: Value
    /// Grows with each change.
    var number: Int
  }

  private let state: Mutex<Version>

  init(_ value: Value) { state = Mutex(Version(value: value, number: 0)) }

  var current: Version { state.withLock { $0 } }

  func change(to value: Value) {
    state.withLock { state in
      state = Version(value: value, number: state.number + 1)
    }
  }
}
