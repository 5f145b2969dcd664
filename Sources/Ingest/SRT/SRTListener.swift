internal import Glibc
internal import FMP4
package import Logging
package import NIOCore
internal import NIOPosix
internal import Synchronization

/// The SRT listener. libsrt runs in a worker process; here are the worker's supervision and the publications. When the
/// worker ends, its publications count as lost connections, and the next worker takes callers at the same UDP socket.
package final class SRTListener: IngestListener {
  /// Values shared by the listener's connections.
  struct Shared: Sendable {
    var gate: any PublishGate
    var clock: SteadyClock
    var logger: Logger
    var connections: ConnectionRegistry
  }

  private struct State {
    var isStopped = false
    /// The UDP socket, once it listens. Every worker has a copy.
    var udp: Int32?
    var link: SRTLink.Handle?
  }

  private let shared: Shared
  private let loop: any EventLoop
  private let launch: @Sendable (_ udp: Int32) -> WorkerLauncher
  private let table: @Sendable () -> SRTTable
  private let state = Mutex(State())
  private let wake = Semaphore()
  private let hasEnded = Semaphore()

  /// - Parameters:
  ///   - group: runs the connections, all on one of its loops.
  ///   - launch: makes the launcher of workers that have the UDP socket.
  ///   - table: what the worker is to know, now.
  package init(
    gate: any PublishGate, clock: SteadyClock, logger: Logger, group: any EventLoopGroup,
    limits: PeerLimits = PeerLimits(), launch: @escaping @Sendable (_ udp: Int32) -> WorkerLauncher,
    table: @escaping @Sendable () -> SRTTable
  ) {
    shared = Shared(
      gate: gate, clock: clock, logger: logger, connections: ConnectionRegistry(limits: limits))
    loop = group.next()
    self.launch = launch
    self.table = table
  }

  /// SRT encrypts by itself: there is no `tls`. One address only.
  package func start(_ place: ListenEndpoint, tls: TLSContextSource?) async throws -> SocketAddress {
    let udp =
      switch place {
      case .address(let address): try UDPSocket.bind(address)
      case .socket(let descriptor): descriptor
      }
    let address = try UDPSocket.address(of: udp)
    state.withLock { $0.udp = udp }
    // The worker dies with the thread that starts it.
    try DedicatedThread.start(named: "weir-srt") { [self] in
      supervise(udp)
      hasEnded.post()
    }
    return address
  }

  package var refusals: ConnectionRefusals { shared.connections.refusals }

  package func stop() async {
    let link = state.withLock { state in
      state.isStopped = true
      return state.link
    }
    for end in shared.connections.closeForGood() { end(.shutdown) }
    await shared.connections.allGone()
    link?.close()
    wake.post()
    guard let udp = state.withLock({ $0.udp.take() }) else { return }
    try? await DedicatedThread.run(named: "weir-srt-stop") { [hasEnded] in
      // A signal may interrupt it; the worker ends without it, too.
      hasEnded.wait(nanoseconds: 4 * SRTLimits.farewell)
      Glibc.close(udp)
    }
  }

  // MARK: the worker

  private var isStopped: Bool { state.withLock { $0.isStopped } }

  private func supervise(_ udp: Int32) {
    let launcher = launch(udp)
    var pause: Int64 = 0
    while !isStopped {
      if pause > 0 { wait(pause) }
      if isStopped { return }
      let begin = MonotonicTime.now()
      do {
        let worker = try launcher.start()
        let how = serve(worker)
        if isStopped { return }
        shared.logger.error("the SRT worker is lost, with its publications (\(how)); another one is started")
      } catch {
        shared.logger.error("SRT takes no callers: \(error)")
      }
      let isHealthy = MonotonicTime.now() &- begin >= SRTLimits.healthyLife
      pause = isHealthy ? SRTLimits.shortestPause : min(max(2 * pause, SRTLimits.shortestPause), SRTLimits.longestPause)
    }
  }

  private func wait(_ nanoseconds: Int64) {
    let end = MonotonicTime.now() &+ nanoseconds
    while !isStopped, MonotonicTime.now() < end { wake.wait(nanoseconds: end &- MonotonicTime.now()) }
  }

  /// Serves a worker until it or the listener ends. Returns how it ended.
  private func serve(_ worker: RunningWorker) -> String {
    defer { state.withLock { $0.link = nil } }
    return SRTLink.serve(worker, shared, loop: loop) { link, isOver in
      state.withLock { $0.link = link }
      tend(link, until: isOver)
    }
  }

  /// Keeps the worker's table current.
  private func tend(_ link: SRTLink.Handle, until isOver: Semaphore) {
    var told: SRTTable?
    while link.isActive, !isStopped {
      let table = table()
      if table != told {
        told = table
        link.send(.table(table))
      }
      isOver.wait(nanoseconds: SRTLimits.tableInterval)
    }
  }
}
