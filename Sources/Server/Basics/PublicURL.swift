/// The public address of this server, from `--public-url`: `https://live.example.com`, without a slash at the end. The Host
/// field of a request is not used: a client can write anything there, and responses are shared between clients.
package struct PublicURL: Sendable, Hashable, CustomStringConvertible {
  /// The path of the server's clock.
  package static let timePath = "/time"

  package let description: String

  /// The name or the address of its host, without the port.
  package var host: String {
    let authority = description.drop { $0 != "/" }.dropFirst(2)
    return String(authority.first == "[" ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" })
  }

  /// Parses `http://HOST` or `https://HOST`, with an optional port.
  package init(parsing text: String) throws(ValueError) {
    let advice = "write https://live.example.com or http://192.0.2.1:8080"
    guard let scheme = ["https://", "http://"].first(where: { text.lowercased().hasPrefix($0) }) else {
      throw ValueError("it begins with neither https:// nor http://", advice: advice)
    }
    var authority = text.dropFirst(scheme.utf8.count)
    if authority.last == "/" { authority.removeLast() }
    guard !authority.contains(where: { "/?#".contains($0) }) else {
      throw ValueError("weir serves no path but the root of its host", advice: advice)
    }
    guard !authority.contains("@") else {
      throw ValueError("a user name before the @ would be public", advice: advice)
    }
    guard Self.isAuthority(authority) else { throw ValueError("that is no host", advice: advice) }
    description = scheme + authority.lowercased()
  }

  /// A name, an IPv4 address or an IPv6 address in brackets, with an optional port (RFC 3986 §3.2).
  private static func isAuthority(_ text: Substring) -> Bool {
    var host = text
    let afterBrackets = text.lastIndex(of: "]").map { text.index(after: $0) } ?? text.startIndex
    if let colon = text[afterBrackets...].lastIndex(of: ":") {
      let digits = text[text.index(after: colon)...]
      guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(digits), port > 0 else {
        return false
      }
      host = text[..<colon]
    }
    if host.first == "[" { return ListenAddress.isIPv6(host.dropFirst().dropLast()) && host.last == "]" }
    let labels = host.split(separator: ".", omittingEmptySubsequences: false)
    return host.utf8.count <= 253
      && labels.allSatisfy { label in
        (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
          && label.unicodeScalars.allSatisfy {
            $0.isASCII && ($0.properties.isAlphabetic || "0"..."9" ~= $0 || "-_".unicodeScalars.contains($0))
          }
      }
  }
}
