/// A range of addresses with the same first bits: `10.0.0.0/8`, `2001:db8::/32`, or one address (RFC 4632 §3.1).
package struct AddressRange: Hashable, Sendable {
  private let first: NetworkAddress
  /// Number of equal bits, of 128.
  private let bits: Int

  /// Nil if the text is not a range.
  package init?(parsing text: some StringProtocol) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let head = parts.first, !head.contains("["), let address = NetworkAddress(parsing: head) else { return nil }
    let most = address.isIPv4 ? 32 : 128
    guard let length = parts.count == 1 ? most : Int(parts[1]), (0...most).contains(length) else { return nil }
    bits = length + 128 - most
    first = Self.prefix(of: address, bits)
  }

  package func contains(_ address: NetworkAddress) -> Bool { Self.prefix(of: address, bits) == first }

  private static func prefix(of address: NetworkAddress, _ bits: Int) -> NetworkAddress {
    func mask(_ bits: Int) -> UInt64 { bits <= 0 ? 0 : bits >= 64 ? .max : .max << UInt64(64 - bits) }
    return NetworkAddress(
      network: address.network & mask(bits), interface: address.interface & mask(bits - 64))
  }
}

/// Proxies whose statement of the client's address is trusted.
package struct TrustedProxies: Hashable, Sendable {
  private let ranges: [AddressRange]
  /// Most addresses of a list that are read. No real chain of proxies is longer.
  private static let longestChain = 8

  package static let none = TrustedProxies([])

  package init(_ ranges: [AddressRange]) { self.ranges = ranges }

  package func contains(_ address: NetworkAddress?) -> Bool {
    guard let address, !ranges.isEmpty else { return false }
    return ranges.contains { $0.contains(address) }
  }

  /// The client's address: the last of the stated addresses that is not itself a trusted proxy. Any client can invent
  /// the addresses before it.
  ///
  /// - Parameters:
  ///   - proxy: the address of the connection.
  ///   - told: the values of X-Forwarded-For, in order; each is a list with commas.
  package func client(behind proxy: NetworkAddress, told: [String]) -> NetworkAddress {
    var client = proxy
    var left = Self.longestChain
    for value in told.reversed() {
      for text in value.split(separator: ",").reversed() {
        guard left > 0, let address = NetworkAddress(parsing: text.drop { $0 == " " }.prefix { $0 != " " }) else {
          return client
        }
        left -= 1
        client = address
        guard contains(address) else { return client }
      }
    }
    return client
  }
}
