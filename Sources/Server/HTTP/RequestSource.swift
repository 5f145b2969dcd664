package import Base
package import NIOCore

/// The peer of a connection, and whether it is trusted to name other clients.
package struct RequestSource: Sendable {
  /// The other end of the connection; nil for channels without an address.
  package let peer: SocketAddress?
  let isTLS: Bool
  /// The request came over the control socket: from the server's own user, or from root.
  package let isControl: Bool
  /// The peer's address.
  private let address: NetworkAddress?
  /// Set when the peer is a proxy that may name its clients.
  private let proxies: TrustedProxies?

  package init(peer: SocketAddress? = nil, isTLS: Bool = false, proxies: TrustedProxies = .none) {
    self.peer = peer
    self.isTLS = isTLS
    isControl = false
    address = NetworkAddress(peer)
    self.proxies = proxies.contains(address) ? proxies : nil
  }

  private init(controlPeer: SocketAddress?) {
    (peer, isTLS, isControl, address, proxies) = (controlPeer, false, true, nil, nil)
  }

  /// A peer of the control socket.
  package static let control = RequestSource(controlPeer: nil)

  /// Whether requests may come from different clients.
  var isProxy: Bool { proxies != nil }

  /// The client's address.
  package func client(_ fields: RequestFields) -> NetworkAddress? {
    guard let proxies, let address else { return address }
    return proxies.client(behind: address, told: fields.all("x-forwarded-for"))
  }

  /// Whether the client's own connection is HTTPS; nil when unknown.
  package func isSecure(_ fields: RequestFields) -> Bool? {
    guard isProxy, let told = fields.first("x-forwarded-proto") else { return isTLS ? true : nil }
    return told.lowercased() == "https"
  }
}
