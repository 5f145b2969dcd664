internal import NIOCore

extension SocketAddress {
  /// For a URL: "localhost:8080" where the server listens on every address, else the address itself (RFC 3986 §3.2).
  var authority: String {
    let port = port ?? 0
    switch ipAddress {
    case "::", "0.0.0.0", nil: return "localhost:\(port)"
    case .some(let ip): return ip.contains(":") ? "[\(ip)]:\(port)" : "\(ip):\(port)"
    }
  }
}
