internal import Basics
internal import HTTP
internal import Ingest
internal import NIOCore
internal import NIOPosix

extension PublisherProtocol {
  /// The protocols that a server speaks. A further protocol is one more element.
  static let all: @Sendable (WeirServer) -> [PublisherProtocol] = { [rtmp($0)] }

  /// RTMP, and RTMPS where that is configured.
  private static func rtmp(_ server: WeirServer) -> PublisherProtocol {
    let configuration = server.configuration
    var limits = RTMPListener.Configuration()
    limits.proxies = configuration.trustedProxies
    limits.peerLimits.connectionsPerAddress = configuration.httpLimits.connectionsPerAddress
    limits.peerLimits.unauthenticated = min(limits.peerLimits.unauthenticated, server.descriptors.unauthenticated)
    let listener = RTMPListener(
      gate: server.streams, clock: server.clock, logger: server.logger, group: NIOSingletons.posixEventLoopGroup,
      configuration: limits)
    return PublisherProtocol(
      listener: listener,
      places: { configuration in
        [Place(setting: "rtmp", address: configuration.rtmp)]
          + (configuration.rtmps.map { [Place(setting: "rtmps", address: $0, isSecure: true)] } ?? [])
      }, path: "/live"
    ) { server, key in "\(server)/NAME\(key)   (OBS: server \(server), stream key NAME\(key))" }
  }
}
