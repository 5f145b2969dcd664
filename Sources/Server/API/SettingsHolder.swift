package import Answers
package import Publishing
internal import Synchronization

/// What the API can do with the settings of a running server.
package protocol SettingsControl: Sendable {
  /// Reads the configuration file again.
  ///
  /// - Parameter who: who asked for it, for the event.
  func reload(by who: String?) async -> Result<ReloadAnswer, SettingsMistake>
  /// What holds, and where each value comes from: for the server, or for a stream.
  func listing(of stream: StreamName?) async -> SettingsAnswer
  /// Replaces what was set of a stream over the API; nil takes it back.
  ///
  /// - Parameter text: JSON, as the stream's entry in the configuration file.
  func set(_ text: String?, of stream: StreamName, by who: String?) async -> Result<ReloadAnswer, SettingsMistake>
}

/// Why settings were refused: one line that names the setting, the value, and what to do.
package struct SettingsMistake: Error {
  let text: String
  /// The request is right, but the server cannot do it: no state folder, or a disk that fails.
  var isOfServer = false

  package init(text: String, isOfServer: Bool = false) {
    (self.text, self.isOfServer) = (text, isOfServer)
  }
}

/// Passes the settings' control to the routes, which are made before it.
package final class SettingsHolder: Sendable {
  private let state = Mutex<(any SettingsControl)?>(nil)

  package init() {}

  /// Nil where the configuration cannot be read again.
  package var control: (any SettingsControl)? {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}
