internal import Base
internal import Glibc
internal import Logging
internal import NIOCore
internal import Synchronization

/// An address that takes SRT callers. libsrt runs in a worker process; here is the worker's supervision. It is started when a
/// caller's handshake has come, and ended when nobody has called for a while: an idle libsrt looks a hundred times a second for
/// work, 0.6 % of a core. When the worker ends, its publications count as lost connections, and the next worker takes callers at the same UDP
/// socket.
final class SRTSupervisor: Sendable {
  private struct State {
    var isStopped = false
    var isClosed = false
    var link: SRTLink.Handle?
    /// The end of a pipe whose closing ends the wait for a caller; nil before and afterwards.
    var alarm: Int32?
  }

  let address: SocketAddress
  /// Every worker has a copy.
  private let udp: Int32
  private let shared: SRTShared
  private let loop: any EventLoop
  private let launch: @Sendable (_ udp: Int32) -> WorkerLauncher
  private let table: @Sendable () -> SRTTable
  /// Nanoseconds without a caller, after which the worker ends.
  private let rest: Int64
  private let state = Mutex(State())
  private let wake = CountingSemaphore()
  private let hasEnded = CountingSemaphore()

  /// Takes over the socket.
  init(
    _ udp: Int32, at address: SocketAddress, _ shared: SRTShared, loop: any EventLoop, rest: Int64,
    launch: @escaping @Sendable (_ udp: Int32) -> WorkerLauncher, table: @escaping @Sendable () -> SRTTable
  ) {
    (self.udp, self.address, self.shared, self.loop) = (udp, address, shared, loop)
    (self.launch, self.table, self.rest) = (launch, table, rest)
  }

  /// Takes callers from now on.
  func open() throws {
    var ends: [Int32] = [-1, -1]
    guard pipe2(&ends, O_CLOEXEC) == 0 else { throw IOError(errnoCode: errno, reason: "pipe2") }
    let (hearing, alarm) = (ends[0], ends[1])
    state.withLock { $0.alarm = alarm }
    // The worker dies with the thread that starts it.
    do {
      try DedicatedThread.start(named: "weir-srt") { [self] in
        supervise(until: hearing)
        Glibc.close(hearing)
        hasEnded.post()
      }
    } catch {
      Glibc.close(hearing)
      silence()
      throw error
    }
  }

  /// Ends the wait for a caller.
  private func silence() {
    if let alarm = state.withLock({ $0.alarm.take() }) { Glibc.close(alarm) }
  }

  /// Starts no further worker; the present one ends with `close`.
  func refuseOthers() { state.withLock { $0.isStopped = true } }

  /// Ends the worker, when it has told its callers, and closes the socket.
  func close() async {
    let (link, wasClosed) = state.withLock { state in
      defer { (state.isStopped, state.isClosed) = (true, true) }
      return (state.link, state.isClosed)
    }
    guard !wasClosed else { return }
    silence()
    link?.close()
    wake.post()
    try? await DedicatedThread.run(named: "weir-srt-stop") { [hasEnded, udp] in
      // A signal may interrupt it; the worker ends without it, too.
      hasEnded.wait(nanoseconds: 4 * SRTLimits.farewell)
      Glibc.close(udp)
    }
  }

  // MARK: the worker

  private var isStopped: Bool { state.withLock { $0.isStopped } }

  /// Returns when a caller's first datagram waits in the socket, where the worker finds it, or when the other end of `alarm` was
  /// closed. Other datagrams are dropped: libsrt would ignore them. With a socket in any other state a worker may try.
  private func waitForCaller(or alarm: Int32) {
    var waiting = [pollfd(fd: udp, events: Int16(POLLIN), revents: 0), pollfd(fd: alarm, events: 0, revents: 0)]
    while true {
      guard poll(&waiting, nfds_t(waiting.count), -1) >= 0 else {
        if errno == EINTR { continue }
        return
      }
      guard waiting[1].revents == 0, waiting[0].revents == Int16(POLLIN),
        UDPSocket.dropsNext(udp, unless: Self.begins)
      else { return }
    }
  }

  /// Whether a datagram can be the first one of a caller: a handshake, a control packet of type 0 with 48 bytes behind its header
  /// (SRT's internet draft §3.2.1).
  private static func begins(_ first: Span<UInt8>, _ length: Int) -> Bool {
    length >= 64 && first[0] == 0x80 && first[1] == 0
  }

  private func supervise(until alarm: Int32) {
    let launcher = launch(udp)
    var pause: Int64 = 0
    waitForCaller(or: alarm)
    while !isStopped {
      if pause > 0 { wait(pause) }
      if isStopped { return }
      let begin = MonotonicTime.now()
      do {
        let worker = try launcher.start()
        let how = serve(worker)
        if isStopped { return }
        guard let how else {
          shared.logger.debug("SRT: nobody has called for a while, so the worker has ended")
          pause = 0
          waitForCaller(or: alarm)
          continue
        }
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

  /// Serves a worker until it or the supervisor ends, or until it has had nothing to do for a while. Returns how it ended; nil if
  /// it had nothing to do.
  private func serve(_ worker: RunningWorker) -> String? {
    defer { state.withLock { $0.link = nil } }
    var isResting = false
    let how = SRTLink.serve(worker, shared, loop: loop) { link, isOver in
      state.withLock { $0.link = link }
      isResting = tend(link, until: isOver)
    }
    return isResting ? nil : how
  }

  /// Keeps the worker's table current. True if it returns because nobody has called for a while.
  private func tend(_ link: SRTLink.Handle, until isOver: CountingSemaphore) -> Bool {
    var told: SRTTable?
    var last = (callers: link.callers, at: MonotonicTime.now())
    while link.isActive, !isStopped {
      let (callers, now) = (link.callers, MonotonicTime.now())
      if callers != last.callers || link.connections > 0 { last = (callers, now) }
      if now &- last.at >= rest { return true }
      let table = table()
      if table != told {
        told = table
        link.send(.table(table))
      }
      isOver.wait(nanoseconds: min(rest, SRTLimits.tableInterval))
    }
    return false
  }
}
