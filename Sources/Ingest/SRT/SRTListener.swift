package import Base
internal import FMP4
internal import Glibc
package import Logging
package import NIOCore
internal import NIOPosix
package import Publishing
internal import Synchronization

/// The SRT listener. A supervisor has the worker of each address that it listens at.
package final class SRTListener: IngestListener {
  private let shared: SRTShared
  private let loop: any EventLoop
  private let launch: @Sendable (_ udp: Int32) -> WorkerLauncher
  private let table: @Sendable () -> SRTTable
  private let connectionsPerAddress: Mutex<Int?>
  private let rest: Int64
  private let supervisors = Mutex<[SRTSupervisor]>([])

  /// - Parameters:
  ///   - group: runs the connections, all on one of its loops.
  ///   - rest: nanoseconds without a caller, after which a worker ends until the next one comes; nil for ten minutes.
  ///   - launch: makes the launcher of workers that have the UDP socket.
  ///   - table: what the worker is to know, now, but for the limit of connections.
  package init(
    gate: any PublishGate, clock: SteadyClock, logger: Logger, group: any EventLoopGroup,
    limits: PeerLimits = PeerLimits(), rest: Int64? = nil,
    launch: @escaping @Sendable (_ udp: Int32) -> WorkerLauncher, table: @escaping @Sendable () -> SRTTable
  ) {
    self.rest = rest ?? SRTLimits.rest
    shared = SRTShared(
      gate: gate, clock: clock, logger: logger, connections: ConnectionRegistry(limits: limits))
    loop = group.next()
    connectionsPerAddress = Mutex(limits.connectionsPerAddress)
    self.launch = launch
    self.table = table
  }

  /// SRT encrypts by itself: there is no `tls`.
  package func start(_ place: ListenEndpoint, tls: TLSContextSource?) async throws -> SocketAddress {
    let udp =
      switch place {
      case .address(let address): try UDPSocket.bind(address)
      case .socket(let descriptor): descriptor
      }
    let address = try UDPSocket.address(of: udp)
    var shared = shared
    shared.localAddress = address
    let supervisor = SRTSupervisor(udp, at: address, shared, loop: loop, rest: rest, launch: launch) { [weak self] in
      guard let self else { return SRTTable() }
      var table = table()
      table.connectionsPerAddress = UInt32(clamping: connectionsPerAddress.withLock { $0 } ?? 0)
      return table
    }
    try supervisor.open()
    supervisors.withLock { $0.append(supervisor) }
    return address
  }

  package var refusals: ConnectionRefusals { shared.connections.refusals }

  package func limit(connectionsPerAddress: Int?) {
    shared.connections.limit(connectionsPerAddress: connectionsPerAddress)
    self.connectionsPerAddress.withLock { $0 = connectionsPerAddress }
  }

  package func stop(at place: SocketAddress) async {
    let closing = supervisors.withLock { supervisors in
      defer { supervisors.removeAll { $0.address == place } }
      return supervisors.filter { $0.address == place }
    }
    for supervisor in closing { supervisor.refuseOthers() }
    for end in shared.connections.ends(at: place) { end(.failed("the server no longer listens at this address")) }
    for supervisor in closing { await supervisor.close() }
  }

  package func stop() async {
    let closing = supervisors.withLock { supervisors in
      defer { supervisors = [] }
      return supervisors
    }
    for supervisor in closing { supervisor.refuseOthers() }
    for end in shared.connections.closeForGood() { end(.shutdown) }
    await shared.connections.allGone()
    for supervisor in closing { await supervisor.close() }
  }
}
