package import NIOCore

/// A server of one protocol by which publishers come. What they publish goes through the gate that it was made with.
package protocol IngestListener: Sendable {
  /// Listens at a place; with `tls`, which is asked for each connection, over TLS. May be called for several places. Port 0
  /// takes a free one. Returns where it listens; throws what the system says when it cannot.
  func start(_ place: ListenEndpoint, tls: TLSContextSource?) async throws -> SocketAddress
  /// Of all addresses, since the start.
  var refusals: ConnectionRefusals { get }
  /// Stops listening, ends every publication with `EndReason.shutdown`, tells the publishers, and returns when all
  /// connections are closed.
  func stop() async
}
