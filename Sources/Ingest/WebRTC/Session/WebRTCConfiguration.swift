package import Base
package import Publishing

/// Settings of a listener of WebRTC. The defaults suit a server on the public internet.
package struct WebRTCConfiguration: Sendable {
  /// An address that publishers are told.
  package struct PublicAddress: Sendable, Hashable {
    package var host: String
    /// Nil: the port that weir listens on.
    package var port: UInt16?

    package init(host: String, port: UInt16?) { (self.host, self.port) = (host, port) }
  }

  package var peerLimits = PeerLimits()
  /// Proxies that state the client's address of an offer.
  package var proxies = TrustedProxies.none
  /// Addresses that publishers are told; empty for those of the machine. Each may have a port of its own.
  package var publicAddresses: [PublicAddress] = []

  /// Connections by TCP of all addresses beyond one of each session.
  package var connections = 512
  /// Publishers that are not connected. Each has a stream, and its descriptors.
  package var waitingPublishers = WebRTCLimits.unconnected

  /// Whether a stream's video may be encoded anew, where its codec has no place in outputs (VP8).
  package var mayEncodeAnew: @Sendable (StreamName) -> Bool = { _ in true }

  package init() {}
}
