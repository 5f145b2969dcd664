internal import Basics

/// How log lines look.
enum LogFormat: String, Sendable, Hashable, CaseIterable {
  /// `12:03:04 notice rtmp studio: …`, for people.
  case text
  /// One JSON object a line, for machines.
  case json

  init(parsing text: String) throws(ValueError) {
    guard let format = LogFormat(rawValue: text) else {
      throw ValueError("there is no such log format", advice: "use text or json")
    }
    self = format
  }
}
