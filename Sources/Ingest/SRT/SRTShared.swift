package import Base
package import Logging
package import NIOCore
package import Publishing

/// Values shared by the connections of a listener, or of calls.
package struct SRTShared: Sendable {
  package var gate: any PublishGate
  package var clock: SteadyClock
  package var logger: Logger
  package var connections: ConnectionRegistry
  /// The address that callers came to; nil for a call of this server.
  var localAddress: SocketAddress?

  package init(
    gate: any PublishGate, clock: SteadyClock, logger: Logger, connections: ConnectionRegistry,
    localAddress: SocketAddress? = nil
  ) {
    (self.gate, self.clock, self.logger, self.connections, self.localAddress) = (
      gate, clock, logger, connections, localAddress
    )
  }
}
