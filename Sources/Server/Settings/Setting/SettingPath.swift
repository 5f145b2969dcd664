internal import Control

/// Where a setting stands in the configuration file: `http.listen`. Below `streams.*` stand settings that a stream may have of its
/// own; `*` is all streams there, and other names and patterns stand in its place.
package struct SettingPath: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
  package let description: String

  package init(stringLiteral text: String) { description = text }

  static let streams = "streams"
  private static let ofStreams = streams + "." + StreamPattern.all.description + "."

  var keys: [String] { description.split(separator: ".").map(String.init) }

  /// Whether a stream may have the setting of its own.
  package var isOfStreams: Bool { description.hasPrefix(Self.ofStreams) }

  /// The place of a setting, or of a group of them, that some streams have of their own: `streams.cam-*.partDuration`.
  static func place(_ path: String, of pattern: StreamPattern) -> String {
    let all = "\(streams).\(StreamPattern.all)"
    return path == all || path.hasPrefix(ofStreams) ? "\(streams).\(pattern)\(path.dropFirst(all.utf8.count))" : path
  }

  /// `partDuration` of `streams.*.partDuration`.
  package var withinStream: String { isOfStreams ? String(description.dropFirst(Self.ofStreams.count)) : description }
}
