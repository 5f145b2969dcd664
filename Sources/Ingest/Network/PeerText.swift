/// What peers say, as it may be said again.
enum PeerText {
  /// Text as it may stand in a log line: ASCII without control characters and quotes, at most `limit` characters.
  static func printable(_ text: String, limit: Int) -> String {
    let bytes = text.utf8.prefix(limit).map { (0x20...0x7E).contains($0) && $0 != 0x22 ? $0 : 0x3F }
    return String(decoding: bytes, as: UTF8.self) + (text.utf8.count > limit ? "…" : "")
  }
}
