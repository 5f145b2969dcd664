internal import Base
internal import Control
internal import Publishing

extension PublishKeys {
  /// The publish keys: `NAME=KEY`, `*=KEY`, or `KEY` alone for all names. A variable holds one `KEY`, or several with names,
  /// separated by commas. In a file, keys stand at the names that they are for. An empty key is always an error: it would change
  /// without notice who may publish.
  init(_ given: [GivenText]) throws(ConfigurationError) {
    self.init()
    try add(given, for: .all)
  }

  /// The keys for all names, and those of names and patterns.
  init(loading given: SettingSources) throws(ConfigurationError) {
    let setting = PublisherOptions().publishKey
    self = try given[setting]
    // Flags and variables with names say nothing of the keys for all.
    if !hasKeyForAll { try add(given.file?.texts[setting.name] ?? [], for: .all) }
    for (pattern, sources) in try given.ofStreams { try add(sources.ownTexts(of: setting), for: pattern) }
  }

  private mutating func add(_ given: [GivenText], for pattern: StreamPattern) throws(ConfigurationError) {
    for text in given {
      guard text.mayName else {
        add(Secret(try text.read(PublishKeyText.key)), for: pattern)
        continue
      }
      let isOneOfSeveral = if case .variable = text.origin { given.count > 1 } else { false }
      let (name, key) = try text.read { text throws(ValueError) in
        try PublishKeyText.parse(text, namesItsStream: isOneOfSeveral)
      }
      add(Secret(key), for: name.map(StreamPattern.init) ?? pattern)
    }
  }
}

/// A publish key as text: `NAME=KEY`, `*=KEY` or `KEY`.
enum PublishKeyText {
  private static let empty = ValueError(
    "the key is empty", advice: "give a key, or leave the setting out to let every client publish")

  /// A text that is a key as a whole.
  static func key(_ text: String) throws(ValueError) -> String {
    guard !text.isEmpty else { throw empty }
    return text
  }

  /// The keys in a variable. A key for all names may contain commas.
  @Sendable static func list(_ text: String) -> [String] { hasName(text) ? text.commaSeparated : [text] }

  /// Whether there is an `=` other than the padding at the end of a base64 key.
  private static func hasName(_ text: String) -> Bool {
    text.utf8.reversed().drop { $0 == UInt8(ascii: "=") }.contains(UInt8(ascii: "="))
  }

  /// - Parameter namesItsStream: a key without a name is not allowed.
  /// - Returns: the name that the key belongs to, nil for all names; and the key.
  static func parse(_ text: String, namesItsStream: Bool) throws(ValueError) -> (name: StreamName?, key: Substring) {
    guard !text.isEmpty else { throw empty }
    guard let equals = text.firstIndex(of: "="), hasName(text) || text[..<equals] == "*" else {
      guard !namesItsStream else {
        throw ValueError(
          "one of several keys has no name", advice: "write NAME=KEY,NAME=KEY; a key with a comma is given by a flag")
      }
      return (nil, text[...])
    }
    let key = text[text.index(after: equals)...]
    guard key.contains(where: { $0 != "=" }) else { throw empty }
    if text[..<equals] == "*" { return (nil, key) }
    guard let name = StreamName(text[..<equals]) else {
      throw ValueError(
        "the text before the = of a key is not a stream name: \(StreamName.grammar)",
        advice: "write NAME=KEY, or *=KEY for all names")
    }
    return (name, key)
  }
}
