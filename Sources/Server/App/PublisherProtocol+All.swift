internal import Base
internal import Control
internal import HTTP
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Publishing
internal import RTMP
internal import Settings
internal import SRT
internal import Streams
internal import WebRTC

extension PublisherProtocol {
  /// The protocols that a server speaks. A further protocol is one more element.
  static let all: @Sendable (WeirServer) -> [PublisherProtocol] = { server in
    [rtmp(server), srt(server)] + (server.configuration.webRTC.map { [webRTC(server, at: $0)] } ?? [])
  }

  /// RTMP, and RTMPS where that is configured.
  private static func rtmp(_ server: WeirServer) -> PublisherProtocol {
    let configuration = server.configuration
    var limits = RTMPListener.Configuration()
    limits.proxies = configuration.trustedProxies
    limits.peerLimits.connectionsPerAddress = configuration.httpLimits.connectionsPerAddress
    limits.peerLimits.share(
      min(
        server.descriptors.unauthenticated - connectionsOfWebRTC(server),
        MemorySources().read().map { RTMPListener.Configuration.unpublished(ofMemory: $0.limit) } ?? .max))
    let listener = RTMPListener(
      gate: server.decoding(server.streams), clock: server.clock, logger: server.logger,
      group: NIOSingletons.posixEventLoopGroup,
      configuration: limits)
    return PublisherProtocol(
      listener: listener,
      places: { configuration in
        [Place(setting: "rtmp", address: configuration.rtmp)]
          + (configuration.rtmps.map { [Place(setting: "rtmps", address: $0, isSecure: true)] } ?? [])
      }, path: "/live"
    ) { server, key in "\(server)/NAME\(key)   (OBS: server \(server), stream key NAME\(key))" }
  }

  /// Connections of WebRTC by TCP beyond one of each session: a part of those that have not published.
  private static func connectionsOfWebRTC(_ server: WeirServer) -> Int {
    guard server.configuration.webRTC != nil else { return 0 }
    return min(WebRTCConfiguration().connections, server.descriptors.unauthenticated / 4)
  }

  private static func webRTC(_ server: WeirServer, at address: ListenAddress) -> PublisherProtocol {
    let configuration = server.configuration
    var limits = WebRTCConfiguration()
    limits.proxies = configuration.trustedProxies
    limits.peerLimits.connectionsPerAddress = configuration.httpLimits.connectionsPerAddress
    limits.connections = connectionsOfWebRTC(server)
    limits.waitingPublishers = min(limits.waitingPublishers, max(32, server.descriptors.unauthenticated))
    limits.publicAddresses = configuration.webRTCAddresses.map {
      WebRTCConfiguration.PublicAddress(host: $0.host, port: $0.port)
    }
    limits.mayEncodeAnew = { [profiles = server.profiles] in profiles.now[$0].settings.encodesForWebRTC == .auto }
    let listener = WebRTCListener(
      gate: server.decoding(server.streams), clock: server.clock, logger: server.logger,
      group: NIOSingletons.posixEventLoopGroup, configuration: limits)
    return PublisherProtocol(
      listener: listener, places: { _ in [Place(setting: "webrtc", address: address)] }, path: ""
    ) { server, key in "/whip/NAME\(key) by WebRTC (WHIP), media at \(server)" }
  }

  private static func srt(_ server: WeirServer) -> PublisherProtocol {
    let (configuration, streams, clock) = (server.configuration, server.streams, server.clock)
    let (profiles, authorizer) = (server.profiles, server.authorizer)
    var limits = PeerLimits()
    limits.connectionsPerAddress = configuration.httpLimits.connectionsPerAddress
    let fitting = MemorySources().read().map { SRTLimits.connections(ofMemory: $0.limit) } ?? .max
    if fitting < configuration.srtConnections {
      server.logger.notice(
        "at most \(fitting) SRT connections fit into this machine's memory, not \(configuration.srtConnections)")
    }
    let listener = SRTListener(
      gate: server.decoding(streams), clock: clock, logger: server.logger, group: NIOSingletons.posixEventLoopGroup,
      limits: limits,
      launch: { .srt(udp: $0) }
    ) {
      var table = SRTTable()
      table.entries = profiles.now.byPattern.map { pattern, profile in
        SRTTable.Entry(
          names: NamePattern(pattern.description), passphrase: profile.srt.passphrase, latency: profile.srt.latency)
      }
      table.keys = authorizer.knownPublishKeys?.map { names, key in
        SRTTable.Key(names: NamePattern(names.description), digest: key.digest)
      }
      table.busy = streams.heldNames
      table.connections = UInt32(clamping: min(configuration.srtConnections, fitting))
      table.defaultStream = configuration.srtDefaultStream
      return table
    }
    return PublisherProtocol(
      listener: listener,
      places: { configuration in configuration.srt.map { [Place(setting: "srt", address: $0)] } ?? [] }, path: ""
    ) { server, key in "\(server)?streamid=NAME\(key)" }
  }
}
