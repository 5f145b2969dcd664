/// Where a setting stands in the configuration file: `http.listen`. Below `streams.*` stand settings that a stream may have of its
/// own; `*` is all streams there, and other names and patterns stand in its place.
struct SettingPath: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
  let description: String

  init(stringLiteral text: String) { description = text }

  static let streams = "streams"
  private static let ofStreams = streams + "." + StreamPattern.all.description + "."

  var keys: [String] { description.split(separator: ".").map(String.init) }

  /// Whether a stream may have the setting of its own.
  var isOfStreams: Bool { description.hasPrefix(Self.ofStreams) }

  /// `partDuration` of `streams.*.partDuration`.
  var withinStream: String { isOfStreams ? String(description.dropFirst(Self.ofStreams.count)) : description }
}
