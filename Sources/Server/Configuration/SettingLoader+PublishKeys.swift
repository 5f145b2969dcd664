internal import Basics
internal import Ingest

extension SettingLoader {
  /// The publish keys: `NAME=KEY`, `*=KEY`, or `KEY` alone, which is for all names. A variable holds one `KEY`, or several
  /// with their names, separated by commas. An empty key is refused wherever it comes from: it would quietly change who
  /// may publish. What is said of a key never repeats it.
  func publishKeys() throws(ConfigurationError) -> PublishKeys {
    var keys = PublishKeys()
    guard !sources.hasEmptyVariable(.publishKey) else { throw emptyKey }
    for given in publishKeyTexts() {
      do throws(ValueError) {
        let (name, key) = try PublishKeyText.parse(given.value, namesItsStream: given.namesItsStream)
        keys.add(Secret(key), for: name)
      } catch {
        throw self.error(.publishKey, nil, error.reason, error.advice)
      }
    }
    return keys
  }

  private var emptyKey: ConfigurationError {
    let error = PublishKeyText.empty
    return self.error(.publishKey, nil, error.reason, error.advice)
  }

  private func publishKeyTexts() -> [(value: String, namesItsStream: Bool)] {
    guard let text = sources.one(.publishKey) else { return [] }
    if case .flag = text.origin { return sources.all(.publishKey).map { ($0.value, false) } }
    // A key for all names may have commas of its own.
    guard PublishKeyText.hasName(text.value) else { return [(text.value, false)] }
    return sources.all(.publishKey).map { ($0.value, true) }
  }
}

/// A publish key as it is written: `NAME=KEY`, `*=KEY` or `KEY`.
enum PublishKeyText {
  static let empty = ValueError(
    "the key is empty", advice: "give a key, or leave the setting out to let anybody publish")

  /// There is a `=` that is not padding at the end, as keys in base64 have it.
  static func hasName(_ text: String) -> Bool {
    text.utf8.reversed().drop { $0 == UInt8(ascii: "=") }.contains(UInt8(ascii: "="))
  }

  /// - Parameter namesItsStream: a key alone is not allowed.
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
        "what stands before the = of a key names no stream: \(StreamName.grammar)",
        advice: "write NAME=KEY, or *=KEY for all names")
    }
    return (name, key)
  }
}
