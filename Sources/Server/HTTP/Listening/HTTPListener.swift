package import Base
package import Logging
package import NIOCore
package import NIOPosix
internal import NIOSSL
internal import Synchronization

/// The sockets of the HTTP server. Any number of addresses, plain or TLS, share one responder, one set of limits and one count
/// of connections.
package final class HTTPListener: Sendable {
  private let services: HTTPServices
  private let group: any EventLoopGroup
  private let loops: [ObjectIdentifier: NIOLoopBoundBox<LoopContext>]
  private let channels = Mutex<[(place: SocketAddress, channel: any Channel)]>([])
  /// What changes while the server runs.
  package let policy: Reloadable<HTTPPolicy>
  private let shedding = Mutex(Shedding())
  /// Connections that are accepted in one turn of the event loop. With NIO's four, the last of a full queue (`listenBacklog`) would
  /// wait for 256 turns. They are counted only later, so they must fit into what `DescriptorBudget` keeps.
  private let acceptedPerTurn: UInt

  /// The number of viewers that must still be disconnected.
  private struct Shedding {
    var count = 0
    var reason = Shortage.descriptors
    var isUnderWay = false

    /// The number for the next round; nil when none is left.
    mutating func next() -> (Int, Shortage)? {
      defer { count = 0 }
      isUnderWay = count > 0
      return isUnderWay ? (count, reason) : nil
    }
  }

  /// The most connections at once, by `limits` and by the available descriptors.
  package var capacity: Int { services.limiter.capacity }

  /// `tickInterval` is the resolution of all deadlines. `clock` gives the dates of responses. `memory` and `descriptors` limit
  /// connections. `proxies` are trusted to name their clients. `hosts` are the names under which the server answers, with those of
  /// its certificate. `passes` are those that the responder gave. `prefix` is what paths begin with for clients. `waker` is woken
  /// when a connection comes where there was none.
  package init(
    responder: any HTTPResponder, limits: HTTPLimits = HTTPLimits(), memory: MemoryBudget = .unlimited,
    descriptors: DescriptorBudget = .unlimited, proxies: TrustedProxies = .none,
    origins: CrossOrigin = .playersOnly, hosts: AllowedHosts = AllowedHosts(),
    certificateHosts: @escaping @Sendable () -> AllowedHosts? = { nil }, passes: (any ViewerPasses)? = nil,
    prefix: String = "", clock: SteadyClock, traffic: HTTPTraffic = HTTPTraffic(), waker: Waker = Waker(),
    logger: Logger,
    group: any EventLoopGroup = NIOSingletons.posixEventLoopGroup,
    pool: NIOThreadPool = NIOSingletons.posixBlockingThreadPool, tickInterval: TimeAmount = .milliseconds(250)
  ) {
    policy = Reloadable(HTTPPolicy(limits, origins: origins, hosts: hosts))
    acceptedPerTurn = UInt(clamping: max(4, min(128, descriptors.limit / 64)))
    services = HTTPServices(
      responder: responder, passes: passes, limits: limits, proxies: proxies, policy: policy,
      certificateHosts: certificateHosts,
      limiter: ConnectionLimiter(
        policy, limits: limits, memory: memory, descriptors: descriptors, traffic: traffic, waker: waker),
      traffic: traffic,
      pools: SendingPools(limit: memory.limit, descriptors: descriptors.limit, threads: pool), logger: logger,
      prefix: prefix)
    self.group = group
    var loops: [ObjectIdentifier: NIOLoopBoundBox<LoopContext>] = [:]
    for loop in group.makeIterator() {
      loops[ObjectIdentifier(loop)] = NIOLoopBoundBox.makeBoxSendingValue(
        LoopContext(eventLoop: loop, interval: tickInterval, traffic: traffic) {
          clock.wallSeconds
        },
        eventLoop: loop)
    }
    self.loops = loops
  }

  /// Looks after memory that connections share. Call twice a second.
  package func look() { services.pools.look() }

  /// The open connections.
  package var connections: Int { services.limiter.connections }

  /// The most connections that were open at once since the last call: a crowd may come and go between two calls.
  package func takePeakConnections() -> Int { services.limiter.takePeak() }

  /// Starts to listen. Returns the address, with the chosen port for port 0. Throws system errors: address in use, not permitted,
  /// not available. `tls` is called for each connection; its context negotiates the HTTP version with the client.
  package func start(_ place: ListenEndpoint, tls: TLSContextSource? = nil) async throws -> SocketAddress {
    try await start(place, tls.map { .tls($0) } ?? .plain)
  }

  /// Listens on the control socket. Connections of other users than the server's own and root are closed.
  package func start(_ control: ControlSocket) async throws {
    _ = try await start(.socket(control.descriptor), .control)
  }

  private func start(_ place: ListenEndpoint, _ kind: ConnectionKind) async throws -> SocketAddress {
    let services = services
    let loops = loops
    let bootstrap = ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: services.limits.listenBacklog)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelOption(.maxMessagesPerRead, value: acceptedPerTurn)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .childChannelOption(.recvAllocator, value: BriefReadAllocator())
      .childChannelOption(.maxMessagesPerRead, value: 1)
      // A client may close its sending side and still read the response.
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let listenAddress = channel.parent?.localAddress
          try Self.configure(channel, kind, listenAddress: listenAddress, services: services, loops: loops)
        }
      }
    let channel = try await bootstrap.listen(at: place)
    guard let bound = channel.localAddress else { throw ChannelError.unknownLocalAddress }
    channels.withLock { $0.append((bound, channel)) }
    return bound
  }

  /// Stops listening at one address, and closes its connections. All others go on.
  package func stop(at place: SocketAddress) async {
    let closing = channels.withLock { channels in
      defer { channels.removeAll { $0.place == place } }
      return channels.filter { $0.place == place }
    }
    for one in closing { try? await one.channel.close().get() }
    await eachConnection { if $0.peer.listenAddress == place { $0.close() } }
  }

  /// Stops listening, gives running responses `HTTPLimits.stopTime` to end, then closes the remaining connections.
  package func stop() async {
    let listening = channels.withLock { channels in
      defer { channels = [] }
      return channels
    }
    for one in listening { try? await one.channel.close().get() }
    await eachConnection { $0.stop() }
    let patience = TimeAmount.nanoseconds(services.limits.stopTime.nanoseconds)
    _ = try? await services.limiter.emptied.wait(patience: patience) { self.connections == 0 }.get()
    await eachConnection { $0.close() }
  }

  /// What runs short, and what to do about it.
  package enum Shortage: String, Sendable {
    case descriptors = """
      descriptors ran short: connections of viewers were closed for a stream that began; raise the limit of open files \
      (ulimit -n, or LimitNOFILE of systemd)
      """
    case memory = """
      memory ran short: connections of viewers were closed, the newest of the address that has most; give the server more, or \
      lower --media-memory or --max-viewers
      """
  }

  /// Calls `shed` in the background, one round after the other: two at once would choose the same connections.
  package func shedSoon(_ count: Int, for shortage: Shortage = .descriptors) {
    let begins = shedding.withLock { shedding in
      defer { shedding.isUnderWay = true }
      shedding.count += count
      shedding.reason = shortage
      return !shedding.isUnderWay
    }
    guard begins else { return }
    Task { while let (count, shortage) = shedding.withLock({ $0.next() }) { await shed(count, for: shortage) } }
  }

  /// Closes a sixteenth of the connections, since memory is missing: what one holds is not known.
  package func shedForMemory() { shedSoon(max(1, connections / 16), for: .memory) }

  /// Closes this many connections of viewers, each time the newest one of the address with most. Those that came by a proxy, whose
  /// address stands for many, come last.
  func shed(_ count: Int, for shortage: Shortage = .descriptors) async {
    let lists = Mutex<(clients: [String: [Int]], proxies: [String: [Int]])>(([:], [:]))
    await eachConnection { connection in
      let peer = connection.peer
      guard peer.mayEnd else { return }
      lists.withLock { lists in
        if peer.source.isProxy {
          lists.proxies[peer.host, default: []].append(peer.number)
        } else {
          lists.clients[peer.host, default: []].append(peer.number)
        }
      }
    }
    let (clients, proxies) = lists.withLock { $0 }
    var chosen = Self.newest(count, of: clients)
    chosen.formUnion(Self.newest(count - chosen.count, of: proxies))
    let numbers = chosen
    guard !numbers.isEmpty else { return }
    await eachConnection { connection in
      guard numbers.contains(connection.peer.number) else { return }
      // The next round may come before it is gone, and must choose others.
      connection.peer.isEnding = true
      connection.closeAtOnce()
    }
    services.traffic.add(.shedViewers, numbers.count)
    services.logger.warning("\(shortage.rawValue)", metadata: ["connections": "\(numbers.count)"])
  }

  /// Up to `count` numbers, each time the highest of the address with most.
  private static func newest(_ count: Int, of addresses: [String: [Int]]) -> Set<Int> {
    var addresses = addresses.mapValues { $0.sorted() }
    var chosen: Set<Int> = []
    while chosen.count < count, let largest = addresses.max(by: { $0.value.count < $1.value.count })?.key,
      let newest = addresses[largest]?.popLast()
    {
      chosen.insert(newest)
    }
    return chosen
  }

  private func eachConnection(_ body: @escaping @Sendable (any HTTPConnection) -> Void) async {
    for loop in loops.values {
      try? await loop.eventLoop.submit {
        for case let connection as any HTTPConnection in loop.value.currentMembers { body(connection) }
      }.get()
    }
  }

  private static func configure(
    _ channel: any Channel, _ kind: ConnectionKind, listenAddress: SocketAddress?, services: HTTPServices,
    loops: [ObjectIdentifier: NIOLoopBoundBox<LoopContext>]
  ) throws {
    if kind.isControl {
      let isAllowed = try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(
        of: NIOBSDSocket.Handle.self, ControlSocket.allows)
      guard isAllowed == true else { throw ChannelError.ioOnClosedChannel }
    }
    guard let loop = loops[ObjectIdentifier(channel.eventLoop)] else {
      throw ChannelError.inappropriateOperationForState
    }
    guard
      let peer = HTTPPeer(of: channel, kind: kind, listenAddress: listenAddress, services: services, loop: loop.value)
    else {
      throw ChannelError.ioOnClosedChannel
    }
    let pipelines = HTTPPipelines(services: services, loop: loop.value, peer: peer)
    let operations = channel.pipeline.syncOperations
    if case .tls(let tls) = kind {
      try operations.addHandler(NIOSSLServerHandler(context: tls()))
      try operations.addHandler(TLSNegotiation(pipelines))
    } else {
      try operations.addHandlers(pipelines.http1)
    }
  }
}
