package import NIOCore

/// A listener of one ingest protocol. Its publications pass through the gate given at creation.
package protocol IngestListener: Sendable {
  /// Listens at an endpoint. With `tls` it uses TLS and asks for the context of each connection. May be called for
  /// several endpoints. Port 0 takes a free port. Returns the address it listens at; throws the system's error.
  func start(_ place: ListenEndpoint, tls: TLSContextSource?) async throws -> SocketAddress
  /// Sum over all addresses, since the start.
  var refusals: ConnectionRefusals { get }
  /// Stops listening and ends every publication with `EndReason.shutdown`. Notifies the publishers, and returns when
  /// all connections are closed.
  func stop() async
}
