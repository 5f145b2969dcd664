package import NIOCore
package import NIOPosix

/// Endpoint at which a server listens.
package enum ListenEndpoint: Sendable {
  case address(SocketAddress)
  /// A listening socket from the parent process, which keeps it open when this process ends. The value is the file
  /// descriptor; it belongs to the channel from now on.
  case socket(CInt)
}

extension ServerBootstrap {
  /// Listens at the endpoint. Throws the system's error.
  package func listen(at place: ListenEndpoint) async throws -> any Channel {
    switch place {
    case .address(let address): try await bind(to: address).get()
    case .socket(let descriptor): try await withBoundSocket(descriptor).get()
    }
  }
}
