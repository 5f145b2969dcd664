internal import Basics
internal import HTTP
internal import Ingest
internal import NIOCore
internal import NIOPosix

/// A protocol for publishers: its listener and its addresses. The server has a list of them.
struct PublisherProtocol: Sendable {
  /// An address to listen on, with its setting.
  struct Place: Sendable {
    var setting: SettingName
    var address: ListenAddress
    var isSecure = false
  }

  /// An address that it listens on.
  struct Endpoint: Sendable {
    var setting: SettingName
    var address: SocketAddress
    var of: PublisherProtocol

    /// The server address for publishers.
    var server: String { "\(setting.text)://\(StartupReport.authority(address))\(of.path)" }
  }

  var listener: any IngestListener
  var places: [Place]
  /// Path after the name and port of the server.
  var path: String
  /// The publishing instructions; `key` follows the stream's name.
  var invitation: @Sendable (_ server: String, _ key: String) -> String

  /// The protocols of a server.
  static let all: @Sendable (WeirServer) -> [PublisherProtocol] = { [rtmp($0)] }

  /// RTMP, and RTMPS if it is configured.
  private static func rtmp(_ server: WeirServer) -> PublisherProtocol {
    let configuration = server.configuration
    var limits = RTMPListener.Configuration()
    limits.proxies = configuration.trustedProxies
    limits.peerLimits.connectionsPerAddress = configuration.httpLimits.connectionsPerAddress
    limits.peerLimits.strangers = min(limits.peerLimits.strangers, server.descriptors.strangers)
    let listener = RTMPListener(
      gate: server.streams, clock: server.clock, logger: server.logger, group: NIOSingletons.posixEventLoopGroup,
      configuration: limits)
    let secure = configuration.rtmps.map { [Place(setting: "rtmps", address: $0, isSecure: true)] } ?? []
    return PublisherProtocol(
      listener: listener, places: [Place(setting: "rtmp", address: configuration.rtmp)] + secure, path: "/live"
    ) { server, key in "\(server)/NAME\(key)   (OBS: server \(server), stream key NAME\(key))" }
  }
}
