package import Base
package import NIOCore
package import Publishing

/// A client that sent an offer.
package struct WebRTCClient: Sendable {
  /// The other end of the connection; nil if unknown.
  package var address: SocketAddress?
  /// The client's own address, where a proxy stands between.
  package var client: NetworkAddress?
  /// As it states it; possibly empty.
  package var software: String
  /// What it has to show to publish.
  package var credential: PublishRequest.Credential

  package init(
    address: SocketAddress?, client: NetworkAddress?, software: String,
    credential: PublishRequest.Credential = .asConfigured
  ) {
    (self.address, self.client, self.software, self.credential) = (address, client, software, credential)
  }
}
