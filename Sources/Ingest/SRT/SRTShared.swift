internal import FMP4
internal import Logging
internal import NIOCore

/// Values shared by the connections of a listener, or of calls.
struct SRTShared: Sendable {
  var gate: any PublishGate
  var clock: SteadyClock
  var logger: Logger
  var connections: ConnectionRegistry
  /// The address that callers came to; nil for a call of this server.
  var localAddress: SocketAddress?
}
