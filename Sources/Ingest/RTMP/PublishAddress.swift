/// Address that a publisher sends: application, stream name and key. The key leaves this type only as a `Secret`.
enum PublishAddress {
  static let application = "live"

  /// The application of a connect command without its query, and the key in that query if there is one
  /// (`live?key=SECRET`, `live/`).
  static func application(of text: String) -> (name: String, key: Secret?) {
    let (path, query) = split(text)
    var name = path[...]
    while name.hasSuffix("/") { name.removeLast() }
    while name.hasPrefix("/") { name.removeFirst() }
    return (String(name), key(in: query))
  }

  /// The key in the query of a tcUrl.
  static func key(ofURL text: String) -> Secret? { key(in: split(text).query) }

  /// The stream of a publish or play command (`cam`, `cam?key=SECRET`). Nil if the name is invalid.
  static func stream(of text: String) -> (name: StreamName, key: Secret?)? {
    let (path, query) = split(text)
    var name = path[...]
    while name.hasPrefix("/") { name.removeFirst() }
    while name.hasSuffix("/") { name.removeLast() }
    return StreamName(name).map { ($0, key(in: query)) }
  }

  /// The part of a name that is safe for responses and log lines: without query, printable, limited in length.
  static func printable(_ text: String) -> String {
    PeerText.printable(split(text).path, limit: RTMPLimits.printedNameBytes)
  }

  private static func split(_ text: String) -> (path: String, query: String) {
    guard let mark = text.firstIndex(of: "?") else { return (text, "") }
    return (String(text[..<mark]), String(text[text.index(after: mark)...]))
  }

  private static func key(in query: String) -> Secret? {
    for part in query.split(separator: "&") where part.hasPrefix("key=") {
      return Secret(part.dropFirst(4).percentDecoded)
    }
    return nil
  }
}
