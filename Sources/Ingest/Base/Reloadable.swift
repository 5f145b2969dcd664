internal import Synchronization

/// A value that is replaced while others read it: settings that change while the server runs. A reader gets the whole old or
/// the whole new value.
package final class Reloadable<Value: Sendable>: Sendable {
  private let state: Mutex<Value>

  package init(_ value: Value) { state = Mutex(value) }

  package var now: Value {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}
