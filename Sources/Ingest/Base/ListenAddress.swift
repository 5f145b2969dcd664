internal import Glibc

/// The address of a listener: `:8080`, `1.2.3.4:8080`, `[::1]:8080` or `localhost:8080`. With port 0 the system chooses a port.
package struct ListenAddress: Sendable, Hashable, CustomStringConvertible {
  /// The local addresses that accept connections.
  package enum Host: Sendable, Hashable {
    /// Every address of the machine, IPv6 and IPv4 (`:8080`).
    case any
    /// One address as the system writes it, without brackets.
    case ipv4(String)
    case ipv6(String)
  }

  package var host: Host
  package var port: UInt16

  package init(host: Host, port: UInt16) {
    self.host = host
    self.port = port
  }

  /// Parses the forms. Host names are refused, because the address of a name can change; localhost is 127.0.0.1.
  package init(parsing text: String) throws(ValueError) {
    guard let colon = text.lastIndex(of: ":") else {
      throw ValueError("an address needs a port", advice: "write :8080, 1.2.3.4:8080 or [::1]:8080")
    }
    let digits = text[text.index(after: colon)...]
    guard !digits.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }), let port = UInt16(digits) else {
      throw ValueError("the port is not a number from 0 to 65535", advice: "write :8080, or :0 for any free port")
    }
    self.init(host: try Self.host(text[..<colon]), port: port)
  }

  private static func host(_ text: Substring) throws(ValueError) -> Host {
    if text.isEmpty { return .any }
    if text == "localhost" { return .ipv4("127.0.0.1") }
    if text.first == "[", text.last == "]" {
      let inner = String(text.dropFirst().dropLast())
      if isIPv6(inner) { return .ipv6(inner) }
      throw ValueError("the brackets hold no IPv6 address", advice: "write [::1]:8080")
    }
    var address = [UInt8](repeating: 0, count: 4)
    if inet_pton(AF_INET, String(text), &address) == 1 { return .ipv4(String(text)) }
    if text.contains(":") {
      throw ValueError("an IPv6 address needs brackets", advice: "write [::1]:8080")
    }
    throw ValueError(
      "the host is not an IP address", advice: "write :8080 for every address, localhost:8080 for this machine only")
  }

  /// Whether the text is an IPv6 address, without brackets.
  static func isIPv6(_ text: some StringProtocol) -> Bool {
    var address = [UInt8](repeating: 0, count: 16)
    return inet_pton(AF_INET6, String(text), &address) == 1
  }

  package var description: String {
    switch host {
    case .any: ":\(port)"
    case .ipv4(let address): "\(address):\(port)"
    case .ipv6(let address): "[\(address)]:\(port)"
    }
  }

  /// Addresses to bind, in order of preference. `::` accepts IPv4 too (dual-stack is the default on Linux). A machine without
  /// IPv6 uses IPv4 alone.
  package var bindCandidates: [String] {
    switch host {
    case .any: ["::", "0.0.0.0"]
    case .ipv4(let address), .ipv6(let address): [address]
    }
  }
}
