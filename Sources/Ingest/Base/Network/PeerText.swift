package import NIOCore

/// Text of peers for log lines.
package enum PeerText {
  /// Text for peers without an address.
  package static let unknown = "unknown"

  /// Text from a peer: ASCII without control characters and quotes, at most `limit` characters.
  package static func printable(_ text: String, limit: Int) -> String {
    let bytes = text.utf8.prefix(limit).map { (0x20...0x7E).contains($0) && $0 != 0x22 ? $0 : 0x3F }
    return String(decoding: bytes, as: UTF8.self) + (text.utf8.count > limit ? "…" : "")
  }

  /// The address for limits: an IPv4 address, or the network half of an IPv6 address. A single host owns that half.
  package static func host(of address: SocketAddress?) -> String {
    NetworkAddress(address)?.hostText ?? unknown
  }

  /// Address and port.
  package static func place(of address: SocketAddress?) -> String {
    guard let address, let ip = address.ipAddress, let port = address.port else { return unknown }
    let mapped = "::ffff:"
    if ip.hasPrefix(mapped), ip.contains(".") { return "\(ip.dropFirst(mapped.count)):\(port)" }
    return ip.contains(":") ? "[\(ip)]:\(port)" : "\(ip):\(port)"
  }
}
