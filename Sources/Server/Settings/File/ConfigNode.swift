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
