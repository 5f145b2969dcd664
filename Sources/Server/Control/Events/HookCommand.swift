package import Base

/// A program and its arguments, in which `{path}` and other names stand for values of the event.
package struct HookCommand: Sendable, Hashable {
  let words: [String]

  /// The names that can stand in an argument.
  static let names = ["id", "kind", "stream", "who", "at", "path", "file"]
  static let longest = 64

  package init(parsing words: [String]) throws(ValueError) {
    guard let program = words.first, program.hasPrefix("/") else {
      throw ValueError("the program has no absolute path", advice: "write [/usr/local/bin/archive, \"{path}\"]")
    }
    guard words.count <= Self.longest else {
      throw ValueError("\(words.count) arguments", advice: "use at most \(Self.longest)")
    }
    for word in words.dropFirst() {
      for name in Self.placeholders(in: word) where !Self.names.contains(name) {
        throw ValueError(
          "{\(LogText.escaped(name))} is no value of an event",
          advice: "use \(Self.names.map { "{\($0)}" }.joined(separator: ", "))")
      }
    }
    guard !words.contains(where: { $0.utf8.contains(0) }) else {
      throw ValueError("an argument has a zero byte", advice: "remove it")
    }
    self.words = words
  }

  private static func placeholders(in word: String) -> [String] {
    word.split(separator: "{", omittingEmptySubsequences: false).dropFirst().compactMap { rest in
      rest.firstIndex(of: "}").map { String(rest[..<$0]) }
    }
  }

  /// The arguments for an event. Each stays one argument, also where a value has spaces.
  ///
  /// - Parameter folder: the folder of recordings.
  func words(for event: Event, recordings folder: String?) -> [String] {
    let path = event.subject.flatMap { subject in folder.map { "\($0)/\(subject)" } }
    let values: [(name: String, value: String)] = [
      ("id", "\(event.id)"), ("kind", event.kind.rawValue), ("stream", event.stream ?? ""), ("who", event.who ?? ""),
      ("at", UTCText(event.at).internet), ("path", path ?? ""),
      ("file", event.subject.map { String($0.split(separator: "/").last ?? "") } ?? ""),
    ]
    return Array(words.prefix(1)) + words.dropFirst().map { Self.fill($0, with: values) }
  }

  /// Values are not looked at again: one that has braces stays as it is.
  private static func fill(_ word: String, with values: [(name: String, value: String)]) -> String {
    var result = ""
    var rest = word[...]
    while let open = rest.firstIndex(of: "{") {
      result += rest[..<open]
      let inner = rest[rest.index(after: open)...]
      guard let close = inner.firstIndex(of: "}"), let found = values.first(where: { $0.name == inner[..<close] })
      else {
        result += "{"
        rest = inner
        continue
      }
      result += found.value.replacing("\0", with: "")
      rest = inner[inner.index(after: close)...]
    }
    return result + String(rest)
  }
}
