package import NIOCore

/// An IP address without a port: 16 bytes, an IPv4 address as `::ffff:a.b.c.d` (RFC 4291 §2.5.5.2), so that both forms of
/// one address are equal.
package struct NetworkAddress: Hashable, Sendable {
  /// The 8 bytes of the network, and those of the host in it, most significant first.
  package let network: UInt64
  package let interface: UInt64

  package init(network: UInt64, interface: UInt64) {
    self.network = network
    self.interface = interface
  }

  /// Nil for what has no IP address.
  package init?(_ address: SocketAddress?) {
    switch address {
    // By their place (ip(7), ipv6(7)): several C modules declare the fields, and which of them the compiler finds
    // depends on what else is imported.
    case .v4(let address): self = withUnsafeBytes(of: address.address) { Self(v4: $0[4..<8]) }
    case .v6(let address): self = withUnsafeBytes(of: address.address) { Self(v6: $0[8..<24]) }
    case .unixDomainSocket, nil: return nil
    }
  }

  /// The four bytes of an IPv4 address.
  package init(v4 bytes: some Sequence<UInt8>) {
    network = 0
    interface = 0xFFFF_0000_0000 | Self.number(bytes)
  }

  /// The sixteen bytes of an IPv6 address.
  package init(v6 bytes: some Collection<UInt8>) {
    network = Self.number(bytes.prefix(8))
    interface = Self.number(bytes.dropFirst(8).prefix(8))
  }

  /// Reads `192.0.2.1` and `2001:db8::1`, also with a port: `192.0.2.1:80`, `[2001:db8::1]:80`. Nil for anything else.
  package init?(parsing text: some StringProtocol) {
    var text = text[...]
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]") else { return nil }
      text = text[..<end].dropFirst()
    } else if let colon = text.firstIndex(of: ":"), text.contains("."), text.lastIndex(of: ":") == colon {
      text = text[..<colon]
    }
    guard text.utf8.count <= Self.longestText else { return nil }
    self.init(try? SocketAddress(ipAddress: String(text), port: 0))
  }

  /// Characters of the longest address.
  private static let longestText = 45

  private static func number(_ bytes: some Sequence<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

  package var isIPv4: Bool { network == 0 && interface >> 32 == 0xFFFF }

  /// What counts as one address: an IPv4 address, or the network half of an IPv6 one, which a single host owns.
  package var host: NetworkAddress { isIPv4 ? self : NetworkAddress(network: network, interface: 0) }

  /// The host in words: `192.0.2.1`, `2001:db8:0:1::/64`.
  package var hostText: String {
    if isIPv4 {
      return stride(from: 24, through: 0, by: -8).map { String(interface >> UInt64($0) & 0xFF) }.joined(separator: ".")
    }
    let groups = stride(from: 48, through: 0, by: -16).map { String(network >> UInt64($0) & 0xFFFF, radix: 16) }
    return groups.joined(separator: ":") + "::/64"
  }
}
