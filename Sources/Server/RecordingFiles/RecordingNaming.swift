package import Base
package import Publishing

/// The pattern of recording names: `--record-name`. Each stream has a folder, and each file name contains the time, so a
/// recording can be found by its name alone.
package struct RecordingNaming: Sendable, Hashable {
  /// `{stream}/{time}`
  package static let standard = RecordingNaming(parts: [.time])

  private enum Part: Sendable, Hashable {
    case text(String)
    case stream
    /// `20261121T072410Z`
    case time
    case field(Field)
  }

  /// A field of the time, in UTC, in the order of the pattern.
  private enum Field: String, Sendable, Hashable, CaseIterable {
    case year, month, day, hour, minute, second

    /// Its digits in `20261121T072410Z`.
    var digits: Range<Int> {
      switch self {
      case .year: 0..<4
      case .month: 4..<6
      case .day: 6..<8
      case .hour: 9..<11
      case .minute: 11..<13
      case .second: 13..<15
      }
    }
  }

  /// Parts of a file name without its ending and number.
  private let parts: [Part]

  private init(parts: [Part]) { self.parts = parts }

  /// The title and the time; nil if nothing of the title is safe in a file name.
  package init?(_ title: RecordingTitle) {
    guard let text = title.fileName else { return nil }
    parts = [.text(text + "_"), .time]
  }

  /// The name of a recording of that stream; nil if it would be too long.
  package func name(stream: StreamName, start: UTCText) -> RecordingName? {
    let digits = Array(start.compact.utf8)
    let base = parts.map { part in
      switch part {
      case .text(let text): text
      case .stream: stream.description
      case .time: start.compact
      case .field(let field): String(decoding: digits[field.digits], as: UTF8.self)
      }
    }.joined()
    return RecordingName(base: base)
  }

  // MARK: Reading a pattern

  /// Bytes of a pattern's text. With a stream's name of at most 64 bytes they fit into a file name.
  private static let longestText = 100
  private static let folder = "{stream}/"
  private static let standardAdvice =
    "write it like {stream}/{time} or {stream}/{stream}_{year}-{month}-{day}_{hour}{minute}{second}"

  /// Parses `{stream}/{time}`, `{stream}/{stream}_{year}-{month}-{day}_{hour}-{minute}-{second}`.
  package init(parsing pattern: String) throws(ValueError) {
    guard pattern.hasPrefix(Self.folder) else {
      throw ValueError("each stream has a folder of its own", advice: "begin with \(Self.folder)")
    }
    let file = String(pattern.dropFirst(Self.folder.count))
    guard !file.contains("/") else {
      throw ValueError("a stream's folder contains no folders", advice: "use - or _ instead of the second /")
    }
    let parts = try Self.split(file)
    try Self.checkText(parts)
    try Self.checkTime(parts)
    self.init(parts: parts)
  }

  private static func split(_ file: String) throws(ValueError) -> [Part] {
    var parts: [Part] = []
    var rest = Substring(file)
    while let brace = rest.firstIndex(of: "{") {
      if brace > rest.startIndex { parts.append(.text(String(rest[..<brace]))) }
      guard let end = rest[brace...].firstIndex(of: "}") else {
        throw ValueError("a { has no }", advice: standardAdvice)
      }
      let word = String(rest[rest.index(after: brace)..<end])
      switch word {
      case "stream": parts.append(.stream)
      case "time": parts.append(.time)
      default:
        guard let field = Field(rawValue: word) else {
          let known = (["stream", "time"] + Field.allCases.map(\.rawValue)).map { "{\($0)}" }.joined(separator: ", ")
          throw ValueError("there is no {\(LogText.escaped(word))}", advice: "use \(known)")
        }
        parts.append(.field(field))
      }
      rest = rest[rest.index(after: end)...]
    }
    if !rest.isEmpty { parts.append(.text(String(rest))) }
    return parts
  }

  private static func checkText(_ parts: [Part]) throws(ValueError) {
    var length = 0
    for (index, part) in parts.enumerated() {
      guard case .text(let text) = part else { continue }
      length += text.utf8.count
      guard text.utf8.allSatisfy(RecordingName.isAllowed) else {
        throw ValueError(
          "it has characters that are not safe in file names and addresses",
          advice: "use letters, digits, dots, hyphens and underscores")
      }
      if index == 0, let first = text.utf8.first, ".-_".utf8.contains(first) {
        throw ValueError("a file's name begins with a letter or a digit", advice: standardAdvice)
      }
    }
    guard length <= longestText else {
      throw ValueError("its text has \(length) bytes", advice: "use at most \(longestText)")
    }
  }

  /// Checks that the time occurs once, complete and in order, and can be told from what surrounds it.
  private static func checkTime(_ parts: [Part]) throws(ValueError) {
    let first = parts.firstIndex { part in
      switch part {
      case .time, .field: true
      case .text, .stream: false
      }
    }
    guard let first else {
      throw ValueError("it has no time, so recordings would have equal names", advice: standardAdvice)
    }
    if first > 0 {
      switch parts[first - 1] {
      case .text(let text) where text.utf8.last.map(RecordingName.isDigit) != true: break
      default:
        throw ValueError("the time cannot be told apart from the text before it", advice: "put - or _ between them")
      }
    }
    let after: Int
    if parts[first] == .time { after = first + 1 } else { after = try endOfFields(parts, from: first) }
    for part in parts[after...] {
      guard case .text(let text) = part, text.utf8.allSatisfy(RecordingName.mayFollowTime) else {
        throw ValueError(
          "only letters and underscores may follow the time", advice: "move the rest, and {stream}, before it")
      }
    }
  }

  private static func endOfFields(_ parts: [Part], from first: Int) throws(ValueError) -> Int {
    var at = first
    for field in Field.allCases {
      if field != .year, parts.indices.contains(at), case .text(let text) = parts[at], text.utf8.count == 1,
        text.utf8.allSatisfy(RecordingName.isSeparator)
      {
        at += 1
      }
      guard parts.indices.contains(at), parts[at] == .field(field) else {
        throw ValueError(
          "the time needs {year}, {month}, {day}, {hour}, {minute} and {second} in this order, with at most one of - _ . T"
            + " between two of them", advice: "or use {time}")
      }
      at += 1
    }
    return at
  }
}
