internal import Base
internal import Logging

/// The level and the format of the log.
package struct LogOptions: TitledSettings {
  package static let title = "Log"

  let logLevel = Setting(
    "log-level", at: "log.level",
    SettingText("level", values: .words(Logger.Level.allCases.map(\.rawValue)), Logger.Level.init(parsing:)),
    default: "info",
    "trace, debug, info, notice, warning, error or critical.")
  package let log = Setting<LogFormat>("log", at: "log.format", .word, default: "text", "text or json.")

  package init() {}
}

extension Logger.Level {
  /// Parses swift-log's names of the levels.
  init(parsing text: String) throws(ValueError) {
    guard let level = Logger.Level(rawValue: text) else {
      let names = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
      throw ValueError("that is not a log level", advice: "use one of \(names)")
    }
    self = level
  }
}
