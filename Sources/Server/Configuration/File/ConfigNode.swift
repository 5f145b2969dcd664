/// A value of the configuration file, and the place where it begins.
struct ConfigNode: Sendable {
  enum Content: Sendable {
    /// No value: nothing behind the colon, `~` or `null`.
    case none
    case text(String)
    case list([ConfigNode])
    case mapping([Entry])
  }

  struct Entry: Sendable {
    var key: ConfigNode
    var value: ConfigNode
  }

  var content: Content
  var place: FilePlace

  /// What it is, for errors.
  var kind: String {
    switch content {
    case .none: "nothing"
    case .text: "one value"
    case .list: "a list"
    case .mapping: "a group of settings"
    }
  }
}

/// A place in a file: line and column, both counted from 1.
struct FilePlace: Sendable, Hashable, CustomStringConvertible {
  var file: String
  var line: Int
  var column: Int

  /// `weir.yaml:3:5`
  var description: String { "\(file):\(line):\(column)" }

  /// An error at this place, of one line.
  func error(_ what: String, _ reason: String, _ advice: String) -> ConfigurationError {
    let what = what.isEmpty ? "" : "\(what): "
    return ConfigurationError(.usage, "\(self): \(what)\(reason); \(advice)")
  }
}
