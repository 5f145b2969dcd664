package import Base
package import NIOCore

/// A way in for publishers. Its publications pass through the gate given at creation.
package protocol PublisherEntrance: Sendable {
  /// Sum over all addresses, since the start.
  var refusals: ConnectionRefusals { get }
  /// Takes no more publishers and ends every publication with `EndReason.shutdown`. Notifies the publishers, and returns
  /// when all connections are closed.
  func stop() async
}

/// A listener of one ingest protocol.
package protocol IngestListener: PublisherEntrance {
  /// Listens at an endpoint. With `tls` it uses TLS and asks for the context of each connection. May be called for
  /// several endpoints. Port 0 takes a free port. Returns the address it listens at; throws the system's error.
  func start(_ place: ListenEndpoint, tls: TLSContextSource?) async throws -> SocketAddress
  /// Stops listening at an endpoint, by the address that `start` returned, and ends its connections. Others go on.
  func stop(at place: SocketAddress) async
  /// The most connections of one address from now on; nil for no limit.
  func limit(connectionsPerAddress: Int?)
}

extension IngestListener {
  package func stop(at place: SocketAddress) async {}
  package func limit(connectionsPerAddress: Int?) {}
}
