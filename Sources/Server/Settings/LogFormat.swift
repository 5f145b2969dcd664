/// The format of log lines.
package enum LogFormat: String, Sendable, Hashable, CaseIterable {
  /// `12:03:04 notice rtmp studio: …`, for people.
  case text
  /// One JSON object a line, for machines.
  case json
}
