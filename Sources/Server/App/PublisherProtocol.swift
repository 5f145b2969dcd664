internal import Basics
internal import HTTP
internal import Ingest
internal import NIOCore
internal import NIOPosix

/// A protocol by which publishers come: what listens, and where. A server is given a list of them.
struct PublisherProtocol: Sendable {
  /// Where it is to listen, by the setting that says so.
  struct Place: Sendable {
    var setting: SettingName
    var address: ListenAddress
    var isSecure = false
  }

  /// Where it listens.
  struct Endpoint: Sendable {
    var setting: SettingName
    var address: SocketAddress
    var of: PublisherProtocol

    /// What publishers are given as the server's address.
    var server: String { "\(setting.text)://\(address.authority)\(of.path)" }
  }

  var listener: any IngestListener
  var places: [Place]
  /// What stands behind name and port of the server.
  var path: String
  /// What people are told who want to publish; `key` follows the stream's name.
  var invitation: @Sendable (_ server: String, _ key: String) -> String

  /// Those that a server speaks.
  static let all: @Sendable (WeirServer) -> [PublisherProtocol] = { [rtmp($0)] }

  /// RTMP, and RTMPS where that is configured.
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
