package import NIOCore
package import NIOPosix

/// Where a server listens.
package enum ListenEndpoint: Sendable {
  case address(SocketAddress)
  /// A socket that listens already: whoever started this process opened it, and keeps it when the process ends. The
  /// number of its descriptor, which belongs to the channel from then on.
  case socket(CInt)
}

extension ServerBootstrap {
  /// Listens there; throws what the system says when it cannot.
  package func listen(at place: ListenEndpoint) async throws -> any Channel {
    switch place {
    case .address(let address): try await bind(to: address).get()
    case .socket(let descriptor): try await withBoundSocket(descriptor).get()
    }
  }
}
