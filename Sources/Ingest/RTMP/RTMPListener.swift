package import Base
internal import FMP4
package import Logging
package import NIOCore
internal import NIOPosix
internal import NIOSSL
package import Publishing
internal import Synchronization

/// The RTMP and RTMPS server. Accepts connections, limits those that do not publish yet, and ends all on `stop`.
/// `RTMPSession` handles the bytes of a connection; `RTMPConnection` handles sockets and timers.
package final class RTMPListener: IngestListener {
  /// Settings. The defaults suit a server on the public internet.
  package struct Configuration: Sendable {
    package var peerLimits = PeerLimits()
    /// Proxies that state the client's address.
    package var proxies = TrustedProxies.none
    /// From accept to an accepted publish command, in nanoseconds.
    package var publishDeadline = RTMPLimits.publishDeadline
    /// From accept to the end of the handshake, in nanoseconds.
    package var handshakeDeadline = RTMPLimits.handshakeDeadline
    /// Without any byte while publishing, in nanoseconds. After that the connection counts as lost.
    package var idleTimeout = RTMPLimits.idleTimeout

    package init() {}

    /// The most connections that have not published where the process has so many bytes of memory.
    package static func unpublished(ofMemory memory: Int) -> Int {
      max(
        RTMPLimits.leastConnectionsBeforePublish,
        memory / RTMPLimits.memoryShareBeforePublish / RTMPLimits.bytesBeforePublish)
    }
  }

  /// Values shared by the listener's connections.
  struct Shared: Sendable {
    var gate: any PublishGate
    var clock: SteadyClock
    var logger: Logger
    var configuration: Configuration
    var connections: ConnectionRegistry
    let watches = CollectingWatches()
  }

  private let shared: Shared
  private let group: any EventLoopGroup
  private let servers = Mutex<[(place: SocketAddress, channel: any Channel)]>([])

  /// `group` runs the connections. `clock` gives the time of the media.
  package init(
    gate: any PublishGate, clock: SteadyClock, logger: Logger, group: any EventLoopGroup,
    configuration: Configuration = Configuration()
  ) {
    shared = Shared(
      gate: gate, clock: clock, logger: logger, configuration: configuration,
      connections: ConnectionRegistry(limits: configuration.peerLimits))
    self.group = group
  }

  /// `tls` is set for RTMPS.
  package func start(_ place: ListenEndpoint, tls: TLSContextSource? = nil) async throws -> SocketAddress {
    let shared = shared
    let channel = try await ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: 1024)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .childChannelOption(
        .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: RTMPLimits.readSizeBeforePublish)
      )
      .childChannelOption(.writeBufferWaterMark, value: .answers(RTMPLimits.pendingAnswerBytesBeforePublish))
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let address = channel.remoteAddress
          guard shared.configuration.proxies.contains(NetworkAddress(address)) else {
            return try shared.add(address, to: channel, tls: tls)
          }
          let patience = TimeAmount.nanoseconds(shared.configuration.publishDeadline)
          try channel.pipeline.syncOperations.addHandler(
            ProxyHeaderHandler(patience: patience) { channel, client in
              try shared.add(client ?? address, to: channel, tls: tls)
            })
        }
      }
      .listen(at: place)
    guard let address = channel.localAddress else { throw ChannelError.unknownLocalAddress }
    servers.withLock { $0.append((address, channel)) }
    return address
  }

  package func stop(at place: SocketAddress) async {
    let closing = servers.withLock { servers in
      defer { servers.removeAll { $0.place == place } }
      return servers.filter { $0.place == place }
    }
    for one in closing { try? await one.channel.close() }
    for end in shared.connections.ends(at: place) { end(.failed("the server no longer listens at this address")) }
  }

  package func limit(connectionsPerAddress: Int?) {
    shared.connections.limit(connectionsPerAddress: connectionsPerAddress)
  }

  package var refusals: ConnectionRefusals { shared.connections.refusals }

  package func stop() async {
    let channels = servers.withLock { servers in
      defer { servers = [] }
      return servers
    }
    for one in channels { try? await one.channel.close() }
    for end in shared.connections.closeForGood() { end(.shutdown) }
    await shared.connections.allGone()
  }

}

extension RTMPListener.Shared {
  private struct Refused: Error {}

  /// Adds the handlers of a connection from an address. Throws if the connection is refused.
  func add(_ address: SocketAddress?, to channel: any Channel, tls: TLSContextSource?) throws {
    let peer = PeerText.host(of: address)
    if let refusal = connections.arrive(
      peer, isProxy: configuration.proxies.contains(NetworkAddress(address)),
      now: clock.monotonic())
    {
      tell(refusal, peer: peer)
      throw Refused()
    }
    let publisher = Publisher(
      protocolName: tls == nil ? "RTMP" : "RTMPS", remoteAddress: PeerText.place(of: address),
      host: peer == PeerText.unknown ? nil : peer,
      localAddress: channel.parent?.localAddress, gate: gate, logger: logger)
    let connection = RTMPConnection(
      shared: self, peer: peer, publisher: publisher, isEncrypted: tls != nil, loop: channel.eventLoop)
    if let tls {
      try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls()))
    }
    try channel.pipeline.syncOperations.addHandler(connection)
  }

  func tell(_ refusal: PeerTable.Refusal, peer: String) {
    switch refusal {
    case .tooManyUnauthenticated:
      logger.debug("RTMP \(peer): too many connections that do not publish; this one is closed")
    case .tooMany:
      logger.info("RTMP \(peer): more connections than an address may have (--max-connections-per-address)")
    case .closed: break
    }
  }
}

extension ChannelOptions.Types.WriteBufferWaterMark {
  /// For so many bytes of responses at most.
  static func answers(_ bytes: Int) -> Self { Self(low: bytes / 4, high: bytes) }
}
