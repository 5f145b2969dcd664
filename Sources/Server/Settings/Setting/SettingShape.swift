/// How a setting is written in the configuration file.
package enum SettingShape: Sendable, Hashable {
  /// One value.
  case one
  /// `true` or `false`.
  case yesOrNo
  /// One value, or a list of them.
  case list
  /// A list whose values are joined with commas into one text, or that text.
  case joined
  /// Names with a value each, which become `NAME=VALUE`.
  case byName
}
