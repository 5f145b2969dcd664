package import Base
package import FMP4
internal import Glibc
package import Logging
package import NIOCore
package import Publishing
package import SRT
internal import Synchronization

/// An SRT listener elsewhere, as a source of this server: it is called, and called again while it does not answer or
/// after the connection was lost. Each call has a worker of its own.
package final class SRTSource: MediaSource {
  /// Whom to call.
  package struct Target: Sendable, Hashable {
    /// A name or an address. Names are resolved for each call, outside of the worker.
    package var host: String
    package var port: UInt16
    package var streamID: String
    package var passphrase: SRTPassphrase?
    /// Milliseconds.
    package var latency: UInt16
    /// Number of the programme. Nil for the first one with a track.
    package var program: UInt16?

    package init(host: String, port: UInt16, streamID: String = "", passphrase: SRTPassphrase? = nil, latency: UInt16) {
      (self.host, self.port, self.streamID) = (host, port, streamID)
      (self.passphrase, self.latency) = (passphrase, latency)
    }
  }

  package let name: StreamName
  private let target: Target
  private let shared: SRTShared
  private let loop: any EventLoop
  private let launch: @Sendable (_ udp: Int32) -> WorkerLauncher
  private let ending = Mutex<EndReason?>(nil)
  private let wake = CountingSemaphore()

  /// Pauses between calls in nanoseconds: the first, and the longest.
  private static let shortestPause: Int64 = 500_000_000
  private static let longestPause: Int64 = 30_000_000_000

  package init(
    name: StreamName, target: Target, gate: any PublishGate, clock: SteadyClock, logger: Logger,
    group: any EventLoopGroup, launch: @escaping @Sendable (_ udp: Int32) -> WorkerLauncher
  ) {
    (self.name, self.target, self.launch) = (name, target, launch)
    shared = SRTShared(
      gate: ServerGate(gate: gate), clock: clock, logger: logger, connections: ConnectionRegistry(limits: PeerLimits()))
    loop = group.next()
  }

  @discardableResult
  package func run() async -> EndReason {
    do {
      try await DedicatedThread.run(named: "weir-srt-call") { [self] in callAgain() }
    } catch {
      return .failed("\(error)")
    }
    return ending.withLock { $0 } ?? .finished
  }

  package func stop(_ reason: EndReason) {
    ending.withLock { $0 = $0 ?? reason }
    wake.post()
    // As the source's own end, so that its stream does not wait for it.
    loop.execute { [shared] in
      for end in shared.connections.closeForGood() { end(.shutdown) }
    }
  }

  private var isEnding: Bool { ending.withLock { $0 != nil } }

  private func callAgain() {
    var pause: Int64 = 0
    while !isEnding {
      let begin = MonotonicTime.now()
      let reason: String
      do {
        reason = try call()
      } catch {
        reason = "\(error)"
      }
      if isEnding { return }
      let isHealthy = MonotonicTime.now() &- begin >= SRTLimits.healthyLife
      pause = isHealthy ? Self.shortestPause : min(max(2 * pause, Self.shortestPause), Self.longestPause)
      shared.logger.warning(
        "srt://\(target.host):\(target.port): \(reason); called again in \(Double(pause / 1_000_000) / 1000) s",
        metadata: ["stream": "\(name)"])
      let end = MonotonicTime.now() &+ pause
      while !isEnding, MonotonicTime.now() < end { wake.wait(nanoseconds: end &- MonotonicTime.now()) }
    }
  }

  /// Returns when the connection, or the attempt, is over. The text says why.
  private func call() throws -> String {
    let address = try SocketAddress.makeAddressResolvingHost(target.host, port: Int(target.port))
    guard let ip = address.ipAddress else { throw ChannelError.unknownLocalAddress }
    let any = try SocketAddress(ipAddress: address.protocol == .inet6 ? "::" : "0.0.0.0", port: 0)
    let udp = try UDPSocket.bind(any)
    defer { close(udp) }
    return SRTLink.serve(try launch(udp).start(), shared, stream: name, program: target.program, loop: loop) {
      link, isOver in
      link.send(
        .call(
          SRTCall(
            address: ip, port: target.port, streamID: target.streamID, passphrase: target.passphrase,
            latency: target.latency)))
      while link.isActive, !isEnding { isOver.wait(nanoseconds: SRTLimits.tableInterval) }
    }
  }
}

/// A gate for sources of the server: they need no key.
private struct ServerGate: PublishGate {
  let gate: any PublishGate

  func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
    var request = request
    request.origin = .server
    request.host = nil
    return try await gate.admit(request)
  }

  func account(of stream: StreamName, end: @escaping @Sendable (_ reason: String) -> Void) -> (any HeldBytes)? {
    gate.account(of: stream, end: end)
  }

  func note(_ refused: RefusedPublication) { gate.note(refused) }
}
