/// The public address of this server, from `--public-url`: `https://live.example.com`, or `https://example.com/weir` where a proxy
/// has other things at the root of that name; without a slash at the end. The Host field of a request is not used: a client can
/// write anything there, and responses are shared between clients.
package struct PublicURL: Sendable, Hashable, CustomStringConvertible {
  /// The path of the server's clock.
  package static let timePath = "/time"

  package let description: String
  /// What the paths of this server begin with there: `/weir`; empty for the root.
  package let path: String

  /// The longest path, in bytes.
  package static let longestPath = 128
  /// What this server's own paths begin with.
  private static let ownPaths: Set<String> = [
    "api", "embed", "favicon.ico", "healthz", "live", "metrics", "publish", "readyz", "recordings", "time", "watch",
    "web", "whep", "whip",
  ]

  /// The name or the address of its host, without the port.
  package var host: String {
    let authority = description.drop { $0 != "/" }.dropFirst(2)
    let isBracketed = authority.first == "["
    return String(
      isBracketed ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" && $0 != "/" })
  }

  /// Parses `http://HOST` or `https://HOST`, with an optional port and path.
  package init(parsing text: String) throws(ValueError) {
    let advice = "write https://live.example.com or http://192.0.2.1:8080"
    guard let scheme = ["https://", "http://"].first(where: { text.lowercased().hasPrefix($0) }) else {
      throw ValueError("it begins with neither https:// nor http://", advice: advice)
    }
    var rest = text.dropFirst(scheme.utf8.count)
    if rest.last == "/" { rest.removeLast() }
    guard !rest.contains(where: { "?#".contains($0) }) else {
      throw ValueError("an address of a server has no query", advice: advice)
    }
    let authority = rest.prefix { $0 != "/" }
    path = String(rest.dropFirst(authority.count))
    if let reason = Self.objection(to: path) {
      throw ValueError(reason, advice: "\(advice), or https://example.com/weir behind a proxy")
    }
    guard !authority.contains("@") else {
      throw ValueError("a user name before the @ would be public", advice: advice)
    }
    guard Self.isAuthority(authority) else { throw ValueError("that is no host", advice: advice) }
    description = scheme + authority.lowercased() + path
  }

  /// Why no server can be reached below a path; nil for one that is empty, or as `/weir` or `/media/live-1`.
  private static func objection(to path: String) -> String? {
    guard !path.isEmpty else { return nil }
    let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    guard path.utf8.count <= longestPath, segments.allSatisfy(isSegment) else {
      return "its path has other characters than letters, digits, dots, hyphens and underscores, an empty part, or more"
        + " than \(longestPath) bytes"
    }
    let first = String(segments[0])
    return ownPaths.contains(first) ? "this server's own addresses begin with /\(first)" : nil
  }

  private static func isSegment(_ text: Substring) -> Bool {
    !text.isEmpty && text.contains { $0 != "." }
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
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
