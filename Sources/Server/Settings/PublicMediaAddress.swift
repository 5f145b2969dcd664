internal import Base

/// An address that publishers by WebRTC are told: `192.0.2.1`, `192.0.2.1:8189`, `[2001:db8::1]:8189`. Names are none: browsers
/// take addresses only.
package struct PublicMediaAddress: Sendable, Hashable {
  package let host: String
  /// Nil: the port that weir listens on.
  package let port: UInt16?

  static func parse(_ text: String) throws(ValueError) -> PublicMediaAddress {
    var (host, port) = (text[...], Substring?.none)
    if text.hasPrefix("[") {
      let parts = text.dropFirst().split(separator: "]", maxSplits: 1, omittingEmptySubsequences: false)
      host = parts.first ?? ""
      let rest = parts.count > 1 ? parts[1] : "?"
      guard rest.isEmpty || rest.hasPrefix(":") else { throw refusal(text) }
      port = rest.isEmpty ? nil : rest.dropFirst()
    } else if text.contains("."), let colon = text.lastIndex(of: ":") {
      (host, port) = (text[..<colon], text[text.index(after: colon)...])
    }
    guard NetworkAddress(parsing: host) != nil, !host.contains("["),
      port == nil || port.flatMap({ UInt16($0) }) ?? 0 > 0
    else { throw refusal(text) }
    return PublicMediaAddress(host: String(host), port: port.flatMap { UInt16($0) })
  }

  private static func refusal(_ text: String) -> ValueError {
    ValueError(
      "that is no IP address, nor one with a port", advice: "write 192.0.2.1, 192.0.2.1:8189 or [2001:db8::1]:8189")
  }
}
