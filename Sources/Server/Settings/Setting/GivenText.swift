internal import Base
package import Control
package import Publishing

/// The text given for a setting, and its origin.
package struct GivenText: Sendable {
  package enum Origin: Sendable, Hashable {
    case flag(SettingName)
    case variable(SettingName)
    /// The pattern is that of the streams whose entry it stands in; `*` for what holds for all, and for the server.
    case file(FilePlace, SettingPath, StreamPattern)
    /// Set of a stream over the API.
    case api(StreamName, SettingPath)
    case standard(SettingName)
  }

  package let text: String
  package let origin: Origin
  let isSecret: Bool

  init(_ text: String, _ origin: Origin, isSecret: Bool = false) {
    (self.text, self.origin, self.isSecret) = (text, origin, isSecret)
  }

  /// Another text of the same origin.
  func with(text: String) -> GivenText { GivenText(text, origin, isSecret: isSecret) }

  /// Whether the text may begin with the name of the stream that it is for. In a file, names stand elsewhere.
  var mayName: Bool {
    switch origin {
    case .flag, .variable: true
    case .file, .api, .standard: false
    }
  }

  func read<Value>(_ parse: (String) throws(ValueError) -> Value) throws(ConfigurationError) -> Value {
    do {
      return try parse(text)
    } catch {
      throw self.error(error.reason, error.advice)
    }
  }

  /// An error of one line that names the setting.
  func error(_ reason: String, _ advice: String) -> ConfigurationError {
    let place =
      switch origin {
      case .flag(let name), .standard(let name): (name: name.flag, separator: " ")
      case .variable(let name): (name: name.variable, separator: "=")
      case .api(let stream, let path):
        (
          name: "set over the API: \(SettingPath.place(path.description, of: StreamPattern(stream)))", separator: ": "
        )
      case .file(let place, let path, let pattern):
        (name: "\(place): \(SettingPath.place(path.description, of: pattern))", separator: ": ")
      }
    let value = isSecret || text.isEmpty ? "" : place.separator + LogText.escaped(text)
    return ConfigurationError(.usage, "\(place.name)\(value): \(reason); \(advice)")
  }
}
