package import Base
internal import Glibc
internal import Logging
internal import MPEGTS
package import NIOCore
internal import NIOPosix
package import Publishing
internal import Synchronization

/// The server's end of a worker's socket. Every connection of the worker is an `SRTConnection`. Used on its event loop.
package final class SRTLink: ChannelInboundHandler {
  package typealias InboundIn = ByteBuffer
  package typealias OutboundOut = ByteBuffer

  /// What the worker has to do, for the thread that watches it.
  final class Activity: Sendable {
    let connections = Atomic(0)
    /// Callers that came so far, let in or rejected.
    let callers = Atomic(0)
  }

  /// Sends requests from any thread.
  package struct Handle: Sendable {
    let channel: any Channel
    fileprivate let activity: Activity

    /// Connections at present.
    var connections: Int { activity.connections.load(ordering: .relaxed) }
    /// Callers that came so far, let in or rejected.
    var callers: Int { activity.callers.load(ordering: .relaxed) }

    package var isActive: Bool { channel.isActive }

    package func send(_ request: SRTRequest) { channel.writeAndFlush(SRTWire.encode(request), promise: nil) }

    /// Lets the worker end: it reads the end of its input.
    func close() { channel.close(mode: .output, promise: nil) }
  }

  private let shared: SRTShared
  private let loop: any EventLoop
  private let fail: @Sendable (String) -> Void
  /// The stream of a call that was asked for; callers name theirs.
  private let stream: StreamName?
  /// The programme that such a call takes; nil for the first one with a track.
  private let program: UInt16?
  private var reader = SRTMessageReader(limit: SRTLimits.messageBytes)
  private let activity: Activity
  private var connections: [Int32: SRTConnection] = [:] {
    didSet { activity.connections.store(connections.count, ordering: .relaxed) }
  }
  private var context: ChannelHandlerContext?

  /// `fail` takes the reason if the worker cannot work or broke the protocol.
  private init(
    _ shared: SRTShared, stream: StreamName?, program: UInt16?, activity: Activity, loop: any EventLoop,
    fail: @escaping @Sendable (String) -> Void
  ) {
    (self.shared, self.stream, self.program, self.loop, self.fail) = (shared, stream, program, loop, fail)
    self.activity = activity
  }

  /// Serves a worker until it ends, or until `tend` returns and the worker has told its callers. Then ends it. Called on
  /// the thread that has started it. Returns how it ended.
  ///
  /// - Parameters:
  ///   - stream: of a call that `tend` asks for, and the programme that is taken of it.
  ///   - tend: says what is to be done. Its semaphore is raised when the worker has ended.
  package static func serve(
    _ worker: RunningWorker, _ shared: SRTShared, stream: StreamName? = nil, program: UInt16? = nil,
    loop: any EventLoop, tend: (Handle, CountingSemaphore) -> Void
  ) -> String {
    let isOver = CountingSemaphore()
    let failure = Mutex<String?>(nil)
    let activity = Activity()
    do {
      // The worker's end closes the other descriptor.
      let channel = try ClientBootstrap(group: loop)
        .channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(
              SRTLink(shared, stream: stream, program: program, activity: activity, loop: channel.eventLoop) { reason in
                failure.withLock { $0 = $0 ?? reason }
              })
          }
        }
        .withConnectedSocket(dup(worker.socket)).wait()
      channel.closeFuture.whenComplete { _ in isOver.post() }
      let link = Handle(channel: channel, activity: activity)
      tend(link, isOver)
      link.close()
      let end = MonotonicTime.now() &+ SRTLimits.farewell
      while channel.isActive, MonotonicTime.now() < end { isOver.wait(nanoseconds: end &- MonotonicTime.now()) }
      channel.close(promise: nil)
    } catch {
      failure.withLock { $0 = "\(error)" }
    }
    let how = worker.end()
    return failure.withLock { $0 } ?? how
  }

  package func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    reader.append(unwrapInboundIn(data))
    do throws(SRTProtocolError) {
      while let (type, body) = try reader.next() { handle(try SRTWire.reply(type, body)) }
    } catch {
      fail("it broke the protocol: \(error)")
      context.close(promise: nil)
    }
  }

  package func channelInactive(context: ChannelHandlerContext) {
    let all = connections
    connections = [:]
    for connection in all.values { connection.lose("the SRT worker ended") }
    self.context = nil
    context.fireChannelInactive()
  }

  package func errorCaught(context: ChannelHandlerContext, error: any Error) {
    fail("\(error)")
    context.close(promise: nil)
  }

  private func handle(_ reply: SRTReply) {
    switch reply {
    case .listening: shared.logger.debug("SRT: the worker takes callers")
    case .failed(let reason): fail(PeerText.printable(reason, limit: SRTLimits.textBytes))
    case .arrived(let caller):
      activity.callers.add(1, ordering: .relaxed)
      begin(caller)
    case .rejected(let refusal):
      activity.callers.add(1, ordering: .relaxed)
      note(refusal)
    case .media(let id, let lost, let bytes): connections[id]?.receive(bytes, after: lost)
    case .figures(let id, let figures): connections[id]?.measured(figures)
    case .closed(let id, let reason):
      let reason = PeerText.printable(reason, limit: SRTLimits.textBytes)
      if stream != nil { fail(reason) }
      connections.removeValue(forKey: id)?.lose(reason)
    }
  }

  private func begin(_ caller: SRTArrival) {
    let address = try? SocketAddress(ipAddress: caller.address, port: Int(caller.port))
    let peer = PeerText.host(of: address)
    guard let stream = stream ?? StreamName(caller.stream), connections[caller.connection] == nil,
      shared.connections.arrive(peer, isProxy: false, now: shared.clock.monotonic()) == nil
    else { return send(.close(caller.connection)) }
    let publisher = Publisher(
      protocolName: "SRT", remoteAddress: PeerText.place(of: address), host: peer == PeerText.unknown ? nil : peer,
      localAddress: shared.localAddress, gate: shared.gate, logger: shared.logger)
    var caller = caller
    if let program { caller.programs = .number(program) }
    let connection = SRTConnection(
      caller, stream, shared: shared, peer: peer, publisher: publisher, link: self, loop: loop)
    connections[caller.connection] = connection
    connection.begin()
  }

  /// Counts a refusal of the worker, logs it, and keeps it for the API.
  private func note(_ refusal: SRTRefusal) {
    let address = try? SocketAddress(ipAddress: refusal.address, port: Int(refusal.port))
    let (peer, now) = (PeerText.host(of: address), shared.clock.monotonic())
    // Without a code the passphrase was wrong.
    if SRTRejection.Code(rawValue: Int32(refusal.code))?.isFailure ?? true,
      shared.connections.arrive(peer, isProxy: false, now: now) == nil
    {
      shared.connections.noLongerUnauthenticated(peer, failed: true, now: now)
      shared.connections.leave(peer)
    }
    let publisher = Publisher(
      protocolName: "SRT", remoteAddress: PeerText.place(of: address), host: peer == PeerText.unknown ? nil : peer,
      localAddress: shared.localAddress, gate: shared.gate, logger: shared.logger)
    let stream = StreamName(refusal.stream)
    let code = refusal.code == 0 ? "" : " (SRT \(refusal.code))"
    let reason = PeerText.printable(refusal.reason, limit: SRTLimits.textBytes) + code
    let streamID = PeerText.printable(refusal.streamID, limit: SRTLimits.streamIDBytes)
    // It may name users and devices, and each caller may write another one: the log and administrators have it.
    let full = streamID.isEmpty ? reason : "\(reason); the stream ID was \(streamID)"
    let subject = stream == nil ? "SRT \(publisher.remoteAddress): " : ""
    shared.logger.warning("\(subject)refused: \(full)", metadata: publisher.metadata(of: stream))
    publisher.noteRefusal(of: stream, full, publicReason: reason)
  }

  // MARK: calls of SRTConnection

  func send(_ request: SRTRequest) {
    context?.writeAndFlush(wrapOutboundOut(SRTWire.encode(request)), promise: nil)
  }

  func remove(_ id: Int32) { connections[id] = nil }
}
