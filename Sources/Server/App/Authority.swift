internal import NIOCore

extension SocketAddress {
  /// For a URL: "localhost:8080" where the server listens on every address, else the address itself (RFC 3986 §3.2).
  var authority: String {
    guard !isEveryAddress, let ip = ipAddress else { return "localhost:\(port ?? 0)" }
    return authority(of: ip)
  }

  /// The same for other machines, by the addresses of this one. None where the server listens at a single address.
  func authorities(of addresses: [String]) -> [String] { isEveryAddress ? addresses.map(authority) : [] }

  private var isEveryAddress: Bool { ipAddress == "::" || ipAddress == "0.0.0.0" }

  private func authority(of ip: String) -> String {
    ip.contains(":") ? "[\(ip)]:\(port ?? 0)" : "\(ip):\(port ?? 0)"
  }
}
