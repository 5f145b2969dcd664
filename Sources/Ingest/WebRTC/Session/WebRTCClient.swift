package import NIOCore

/// A client that sent an offer.
package struct WebRTCClient: Sendable {
  /// The other end of the connection; nil if unknown.
  package var address: SocketAddress?
  /// The client's own address, where a proxy stands between.
  package var client: NetworkAddress?
  /// As it states it; possibly empty.
  package var software: String

  package init(address: SocketAddress?, client: NetworkAddress?, software: String) {
    (self.address, self.client, self.software) = (address, client, software)
  }
}
