internal import Base
internal import Publishing

/// Address that a publisher sends: application, stream name and key. The key leaves this type only as a `Secret`.
///
/// Encoders divide an address between two fields as they like, so both are one path. Of it `live` is left out, and `_definst_`,
/// which Wowza has behind it: `live` and `cam`, `live/cam` alone, `cam` alone, no application and `cam`.
enum PublishAddress {
  static let application = "live"
  private static let instance = "_definst_"
  /// Which field of an encoder has to change.
  private static let fields = "server rtmp://HOST/\(application), stream key NAME"

  /// The application of a connect command without its query, and the key in that query if there is one
  /// (`live?key=SECRET`, `live/`).
  static func application(of text: String) -> (name: String, key: Secret?) {
    let (path, query) = split(text)
    var name = path[...]
    while name.hasSuffix("/") { name.removeLast() }
    while name.hasPrefix("/") { name.removeFirst() }
    return (String(name), key(in: query))
  }

  /// The stream of a publish or play command to an application, which has no query here. Throws what to change.
  static func stream(of text: String, in application: String) throws(WireError) -> (name: StreamName, key: Secret?) {
    let (path, query) = split(text)
    let segments = path.split(separator: "/")
    let (before, behind) = (rest(application.split(separator: "/")), segments.count > 1 ? rest(segments) : segments)
    guard let last = behind.last ?? before.last else {
      throw WireError(.unsupported, "no stream name came; set the encoder to \(fields); use \(StreamName.grammar)")
    }
    guard before.isEmpty || before.count + behind.count == 1 else { throw unknown(application) }
    guard before.count + behind.count == 1, let name = StreamName(last) else {
      let shown = printable(behind.isEmpty ? application : path)
      throw WireError(.unsupported, "stream name \"\(shown)\" is not possible; use \(StreamName.grammar)")
    }
    return (name, key(in: query))
  }

  /// Throws where no stream name makes an address of an application.
  static func check(application: String) throws(WireError) {
    let left = rest(application.split(separator: "/"))
    if left.count > 1 || left.contains(where: { StreamName($0) == nil }) { throw unknown(application) }
  }

  private static func unknown(_ application: String) -> WireError {
    WireError(
      .unsupported,
      "application \"\(printable(application))\" is unknown; publish to rtmp://HOST/\(Self.application)/NAME (\(fields))"
    )
  }

  /// The segments of a path behind `live` and `_definst_`.
  private static func rest(_ segments: [Substring]) -> [Substring] {
    var rest = segments[...]
    if rest.first?.lowercased() == application { rest.removeFirst() }
    if rest.first?.lowercased() == instance { rest.removeFirst() }
    return Array(rest)
  }

  /// The key in the query of a tcUrl.
  static func key(ofURL text: String) -> Secret? { key(in: split(text).query) }

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
