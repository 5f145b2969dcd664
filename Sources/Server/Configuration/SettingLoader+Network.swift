internal import Basics
internal import HTTP
internal import Ingest

extension SettingLoader {
  /// The ranges of `--trusted-proxy`.
  func trustedProxies() throws(ConfigurationError) -> TrustedProxies {
    var ranges: [AddressRange] = []
    for given in sources.all(.trustedProxy) {
      ranges.append(
        try value(given) { text throws(ValueError) in
          guard let range = AddressRange(parsing: text) else {
            throw ValueError(
              "that is no address and no range of addresses", advice: "write 10.0.0.7, 10.0.0.0/8 or 2001:db8::/32")
          }
          return range
        })
    }
    return TrustedProxies(ranges)
  }

  /// The origins of `--cors`.
  func crossOrigin() throws(ConfigurationError) -> CrossOrigin {
    var origins: [String] = []
    for given in sources.all(.cors) { origins.append(try value(given, Self.origin)) }
    return CrossOrigin(origins: origins)
  }

  /// `*`, or scheme, host and, where it is not the usual one, port (RFC 6454 §6.2).
  private static func origin(_ text: String) throws(ValueError) -> String {
    if text == "*" { return text }
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 3, ["http:", "https:"].contains(parts[0]), parts[1].isEmpty, !parts[2].isEmpty,
      !parts[2].contains(where: { "@?#, ".contains($0) })
    else { throw ValueError("that is no origin", advice: "write https://player.example, without a path, or *") }
    return text.lowercased()
  }
}
