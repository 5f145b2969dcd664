internal import Answers
internal import Base

/// One line of `weir doctor`: what was looked at, what was found, and what to do about it.
struct Finding: Sendable, Hashable, Encodable {
  enum Level: String, Sendable, Hashable, Encodable {
    case ok
    /// It works, and would be better otherwise.
    case advice
    /// weir does not start like this, or clients do not reach it.
    case problem
  }

  var level: Level
  /// What kind of thing: `port`, `folder` …
  var check: String
  /// Which one: an address, a path, a device.
  var subject: String
  var found: String
  /// What to do; nil where all is well.
  var advice: String?

  static func ok(_ check: String, _ subject: String, _ found: String) -> Finding {
    Finding(level: .ok, check: check, subject: subject, found: found)
  }

  static func advice(_ check: String, _ subject: String, _ found: String, _ advice: String) -> Finding {
    Finding(level: .advice, check: check, subject: subject, found: found, advice: advice)
  }

  static func problem(_ check: String, _ subject: String, _ found: String, _ advice: String) -> Finding {
    Finding(level: .problem, check: check, subject: subject, found: found, advice: advice)
  }

  /// From a message of one line that says what to do behind a semicolon, as all messages of weir do.
  static func split(_ level: Level, _ check: String, _ subject: String, _ message: String) -> Finding {
    guard let semicolon = message.firstIndex(of: ";") else {
      return Finding(level: level, check: check, subject: subject, found: message)
    }
    let advice = message[message.index(after: semicolon)...].drop { $0 == " " }
    return Finding(
      level: level, check: check, subject: subject, found: String(message[..<semicolon]), advice: String(advice))
  }

  private static let widths = (level: 9, check: 13)

  /// One line; what comes from outside is escaped.
  var text: String {
    func padded(_ word: String, _ width: Int) -> String {
      word + String(repeating: " ", count: max(1, width - word.count))
    }
    let what = [subject, found].filter { !$0.isEmpty }.map(LogText.escaped).joined(separator: ": ")
    let advice = advice.map { "; \(LogText.escaped($0))" } ?? ""
    return padded(level.rawValue, Self.widths.level) + padded(check, Self.widths.check) + what + advice
  }
}
