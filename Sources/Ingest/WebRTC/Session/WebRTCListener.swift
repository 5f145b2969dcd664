package import Base
internal import FMP4
internal import Glibc
package import Logging
package import NIOCore
internal import NIOPosix
package import Publishing
internal import Synchronization

/// WebRTC: one port of UDP and TCP for the media of all publishers and viewers. Their offers come by another way (`offer`,
/// `watch`), which is WHIP (RFC 9725) and WHEP over HTTP. All sessions are on one event loop.
package final class WebRTCListener: IngestListener {
  /// Why it cannot listen.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  private struct Running: Sendable {
    var place: SocketAddress
    var channels: [any Channel]
  }

  private let loop: any EventLoop
  private let shared: WebRTCHub.Shared?
  private let connections: ConnectionRegistry
  private let hub: NIOLoopBoundBox<WebRTCHub?>
  private let running = Mutex<[Running]>([])

  package init(
    gate: any PublishGate, clock: SteadyClock, logger: Logger, group: any EventLoopGroup,
    configuration: WebRTCConfiguration = WebRTCConfiguration()
  ) {
    loop = group.next()
    hub = .makeEmptyBox(valueType: WebRTCHub.self, eventLoop: loop)
    let connections = ConnectionRegistry(limits: configuration.peerLimits)
    self.connections = connections
    shared = DTLSIdentity().map {
      WebRTCHub.Shared(
        gate: gate, clock: clock, logger: logger, configuration: configuration, connections: connections, identity: $0)
    }
  }

  package var refusals: ConnectionRefusals { connections.refusals }

  package func limit(connectionsPerAddress: Int?) { connections.limit(connectionsPerAddress: connectionsPerAddress) }

  // MARK: listening

  /// Listens by UDP and by TCP at one port.
  package func start(_ place: ListenEndpoint, tls: TLSContextSource?) async throws -> SocketAddress {
    guard let shared else { throw Failure(description: "OpenSSL makes no certificate for DTLS") }
    guard SRTPSession.isAvailable else {
      throw Failure(description: "libsrtp cannot be used: its library of cryptography (libnss3) is incomplete")
    }
    let (loop, hub) = (loop, hub)
    try await loop.submit { hub.value = hub.value ?? WebRTCHub(shared, on: loop) }.get()
    let address = try await listenTwice(at: place)
    let candidates = Self.candidates(at: address, shared.configuration.publicAddresses)
    try await loop.submit { hub.value?.candidates += candidates }.get()
    return address
  }

  /// Ports that the system chooses for UDP and that are tried for TCP.
  private static let chosenPorts = 16

  /// Listens by UDP, and at the same port by TCP. A port that the system chose for the one may be taken for the other: then
  /// another one is tried.
  private func listenTwice(at place: ListenEndpoint) async throws -> SocketAddress {
    var left = if case .address(let address) = place, address.port == 0 { Self.chosenPorts } else { 1 }
    while true {
      let datagrams = try await listen(at: place)
      do {
        guard let address = datagrams.localAddress else { throw ChannelError.unknownLocalAddress }
        let streams = try await accept(at: address)
        running.withLock { $0.append(Running(place: address, channels: [datagrams, streams])) }
        return address
      } catch {
        try? await datagrams.close()
        left -= 1
        guard left > 0, (error as? IOError)?.errnoCode == EADDRINUSE else { throw error }
      }
    }
  }

  private func listen(at place: ListenEndpoint) async throws -> any Channel {
    let hub = hub
    let bootstrap = DatagramBootstrap(group: loop)
      .channelOption(.datagramVectorReadMessageCount, value: 16)
      // What is left is told again by the next look at the socket: a second read would mostly find nothing.
      .channelOption(.maxMessagesPerRead, value: 1)
      .channelOption(
        .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 16 * WebRTCLimits.datagramBytes)
      )
      .channelOption(.socketOption(.so_rcvbuf), value: 4 << 20)
      .channelOption(.socketOption(.so_sndbuf), value: 4 << 20)
      .channelOption(
        .writeBufferWaterMark,
        value: ChannelOptions.Types.WriteBufferWaterMark(
          low: WebRTCLimits.pendingBytes, high: 4 * WebRTCLimits.pendingBytes)
      )
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          guard let hub = hub.value else { throw ChannelError.inappropriateOperationForState }
          try channel.pipeline.syncOperations.addHandler(WebRTCDatagrams(hub))
        }
      }
    switch place {
    case .address(let address): return try await bootstrap.bind(to: address).get()
    case .socket(let descriptor): return try await bootstrap.withBoundSocket(descriptor).get()
    }
  }

  private func accept(at address: SocketAddress) async throws -> any Channel {
    let hub = hub
    return try await ServerBootstrap(group: loop)
      .serverChannelOption(.backlog, value: 256)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .childChannelOption(
        .writeBufferWaterMark,
        value: ChannelOptions.Types.WriteBufferWaterMark(
          low: WebRTCLimits.pendingBytes / 4, high: WebRTCLimits.pendingBytes)
      )
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          guard let hub = hub.value else { throw ChannelError.inappropriateOperationForState }
          try channel.pipeline.syncOperations.addHandler(try WebRTCConnection(hub, channel))
        }
      }
      .bind(to: address).get()
  }

  /// What publishers are told: the configured addresses, the one listened at, or those of the machine.
  private static func candidates(at address: SocketAddress, _ configured: [WebRTCConfiguration.PublicAddress])
    -> [ICECandidate]
  {
    let port = UInt16(clamping: address.port ?? 0)
    var hosts = configured.map { ($0.host, $0.port ?? port) }
    if hosts.isEmpty {
      let isAny = ["0.0.0.0", "::"].contains(address.ipAddress ?? "")
      hosts = isAny ? MachineNetwork.addresses(of: address).map { ($0, port) } : [(address.ipAddress ?? "", port)]
    }
    return hosts.prefix(8).enumerated().flatMap { rank, host in
      [ICECandidate.Transport.udp, .tcp].map {
        ICECandidate(address: host.0, port: host.1, transport: $0, rank: rank)
      }
    }
  }

  package func stop(at place: SocketAddress) async {
    let closing = running.withLock { running in
      defer { running.removeAll { $0.place == place } }
      return running.filter { $0.place == place }
    }
    for channel in closing.flatMap(\.channels) { try? await channel.close() }
  }

  package func stop() async {
    let closing = running.withLock { running in
      defer { running = [] }
      return running
    }
    // First the sessions: they say goodbye over the sockets.
    for end in connections.closeForGood() { end(.shutdown) }
    let hub = hub
    try? await loop.submit { hub.value?.endViewers() }.get()
    await connections.allGone()
    for channel in closing.flatMap(\.channels) { try? await channel.close() }
  }

  // MARK: offers

  /// Takes an offer for a stream. The future is of the listener's event loop.
  package func offer(
    _ description: String, for stream: StreamName, key: Secret?, of client: WebRTCClient
  ) -> EventLoopFuture<WebRTCReply> {
    let promise = loop.makePromise(of: WebRTCReply.self)
    let hub = hub
    loop.execute {
      guard let hub = hub.value else { return promise.succeed(.ended("WebRTC has not begun")) }
      hub.take(description, for: stream, key: key, of: client, reply: promise)
    }
    return promise.futureResult
  }

  /// Takes the offer of a viewer. The future is of the listener's event loop.
  package func watch(
    _ description: String, _ watched: WatchedMedia, of client: WebRTCClient
  ) -> EventLoopFuture<WebRTCReply> {
    let hub = hub
    return loop.submit { hub.value?.watch(description, watched, of: client) ?? .ended("WebRTC has not begun") }
  }

  /// What a session is for.
  package enum Side: Sendable {
    case publisher, viewer

    fileprivate var purpose: WebRTCTransport.Purpose { self == .publisher ? .publishing : .watching }
  }

  /// Changes a session (RFC 9725 §4.3). `tag` is that of `If-Match`.
  package func change(
    _ session: String, of stream: StreamName, _ side: Side, _ fragment: String, ifMatch tag: String
  ) -> EventLoopFuture<WebRTCChange> {
    let hub = hub
    return loop.submit {
      hub.value?.change(session, of: stream, side.purpose, fragment, ifMatch: tag) ?? .noSuchSession
    }
  }

  /// Why the server has ended a session; nil if it has not, or long ago.
  package func ending(of session: String, of stream: StreamName, _ side: Side) -> EventLoopFuture<String?> {
    let hub = hub
    return loop.submit { hub.value?.reason(of: session, of: stream, side.purpose) }
  }

  /// Ends a session: `taken`, `noSuchSession` or `over`.
  package func end(_ session: String, of stream: StreamName, _ side: Side) -> EventLoopFuture<WebRTCChange> {
    let hub = hub
    return loop.submit { hub.value?.end(session, of: stream, side.purpose) ?? .noSuchSession }
  }
}
