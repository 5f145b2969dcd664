package import NIOCore

/// An IP address without a port, in 16 bytes. IPv4 is mapped to `::ffff:a.b.c.d` (RFC 4291 §2.5.5.2), so that both
/// forms of an address are equal.
package struct NetworkAddress: Hashable, Sendable {
  /// The 8 bytes of the network and the 8 bytes of the interface, most significant first.
  package let network: UInt64
  package let interface: UInt64

  package init(network: UInt64, interface: UInt64) {
    self.network = network
    self.interface = interface
  }

  /// Nil if the socket address is not an IP address.
  package init?(_ address: SocketAddress?) {
    switch address {
    // By their offsets (ip(7), ipv6(7)). Several C modules declare these fields, and the imports decide which one the
    // compiler finds.
    case .v4(let address): self = withUnsafeBytes(of: address.address) { Self(v4: $0[4..<8]) }
    case .v6(let address): self = withUnsafeBytes(of: address.address) { Self(v6: $0[8..<24]) }
    case .unixDomainSocket, nil: return nil
    }
  }

  /// From the four bytes of an IPv4 address.
  package init(v4 bytes: some Sequence<UInt8>) {
    network = 0
    interface = 0xFFFF_0000_0000 | Self.number(bytes)
  }

  /// From the sixteen bytes of an IPv6 address.
  package init(v6 bytes: some Collection<UInt8>) {
    network = Self.number(bytes.prefix(8))
    interface = Self.number(bytes.dropFirst(8).prefix(8))
  }

  /// Parses `192.0.2.1` and `2001:db8::1`, also with a port: `192.0.2.1:80`, `[2001:db8::1]:80`. Nil for any other
  /// text.
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

  /// Length of the longest address text.
  private static let longestText = 45

  private static func number(_ bytes: some Sequence<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

  package var isIPv4: Bool { network == 0 && interface >> 32 == 0xFFFF }

  /// The address for limits: an IPv4 address, or the network half of an IPv6 address. A single host owns that half.
  package var host: NetworkAddress { isIPv4 ? self : NetworkAddress(network: network, interface: 0) }

  /// Text of the host: `192.0.2.1`, `2001:db8:0:1::/64`.
  package var hostText: String {
    if isIPv4 {
      return stride(from: 24, through: 0, by: -8).map { String(interface >> UInt64($0) & 0xFF) }.joined(separator: ".")
    }
    let groups = stride(from: 48, through: 0, by: -16).map { String(network >> UInt64($0) & 0xFFFF, radix: 16) }
    return groups.joined(separator: ":") + "::/64"
  }
}
