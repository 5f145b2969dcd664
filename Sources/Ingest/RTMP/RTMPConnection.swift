internal import FMP4
internal import Logging
internal import NIOCore

/// One connection: carries bytes between the socket and an `RTMPSession`, and keeps the time; admission and the
/// publication itself are in `RTMPConnection+Publishing`. Lives on its event loop.
final class RTMPConnection: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  let shared: RTMPListener.Shared
  /// The address as it is held to account.
  let peer: String
  let publisher: Publisher
  var session: RTMPSession
  var actions: [RTMPAction] = []
  private var spare: [RTMPAction] = []
  var context: ChannelHandlerContext?
  var publication: AdmittedPublication?
  /// Counts publish commands, so that an eviction reaches the publication it means.
  var attempt = 0
  var pending: CommandSession.PublishIntent?
  var isStranger = true
  var isClosing = false
  private var hasFailed = false
  var lastRead: Int64
  private var lossReason = "the publisher closed the connection without ending the stream"
  var deadline: Scheduled<Void>?
  private var handshakeDeadline: Scheduled<Void>?
  var idleTimer: RepeatedTask?
  private var gateTimer: Scheduled<Void>?
  /// Runs while messages wait that came too fast.
  private var paceTimer: Scheduled<Void>?

  init(shared: RTMPListener.Shared, peer: String, remote: String, protocolName: String) {
    self.shared = shared
    self.peer = peer
    publisher = Publisher(
      protocolName: protocolName, remoteAddress: remote, host: peer == PeerText.nobody ? nil : peer, gate: shared.gate,
      logger: shared.logger)
    session = RTMPSession(wallOffset: shared.clock.wallOffset)
    lastRead = shared.clock.monotonicNanoseconds()
  }

  var now: Int64 { shared.clock.monotonicNanoseconds() }

  // MARK: the channel

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    let end = onLoop(context) { $0.shutDown() }
    guard shared.connections.add(self, end: end) else { return context.close(promise: nil) }
    // Who says nothing soon makes room for others of its address.
    handshakeDeadline = context.eventLoop.scheduleTask(
      in: .nanoseconds(shared.configuration.handshakeDeadline), onLoop(context) { $0.handshakeDeadlinePassed() })
    deadline = context.eventLoop.scheduleTask(
      in: .nanoseconds(shared.configuration.publishDeadline), onLoop(context) { $0.publishDeadlinePassed() })
  }

  func channelInactive(context: ChannelHandlerContext) {
    finish()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    finish()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    lossReason = "\(error)"
    if publication == nil {
      log(.debug, "\(error)")
    }
    context.close(promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if isClosing { return }
    var bytes = unwrapInboundIn(data)
    let now = now
    lastRead = now
    session.receive(&bytes, now: now, to: &actions)
    perform()
    watchGate(now)
  }

  /// A peer that leaves our answers unread is not read either.
  func channelWritabilityChanged(context: ChannelHandlerContext) {
    setReading()
    context.fireChannelWritabilityChanged()
  }

  func setReading() {
    guard let context else { return }
    let isReading = isClosing || pending == nil && paceTimer == nil && context.channel.isWritable
    context.channel.setOption(.autoRead, value: isReading).whenFailure { _ in }
  }

  /// The connection is over, whoever ended it.
  private func finish() {
    guard context != nil else { return }
    context = nil
    deadline?.cancel()
    handshakeDeadline?.cancel()
    idleTimer?.cancel()
    gateTimer?.cancel()
    paceTimer?.cancel()
    if !isClosing {
      session.takeRest(now: now, to: &actions)
      perform()
    }
    endPublication(.connectionLost(lossReason))
    if isStranger {
      isStranger = false
      shared.connections.noLongerStranger(peer, failed: hasFailed, now: now)
    }
    shared.connections.remove(self, of: peer)
  }

  // MARK: what the session wants

  func perform() {
    while !actions.isEmpty {
      // Deliveries may lead to new actions: they are done after these.
      var batch = spare
      spare = []
      swap(&batch, &actions)
      for action in batch { perform(action) }
      batch.removeAll(keepingCapacity: true)
      spare = batch
    }
    watchPace()
  }

  private func perform(_ action: RTMPAction) {
    switch action {
    case .send(let bytes): context?.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
    case .media(.event(let event)): deliver(event)
    case .media(.lost(let kind)): publication?.sink.lost(kind)
    case .media(.warn(let warning)): publication?.sink.warn(warning)
    case .media(.withdraw(let warning)): publication?.sink.withdraw(warning)
    case .ask(let intent): ask(intent)
    case .log(let level, let text), .media(.log(let level, let text)): log(level, text)
    case .refused(let reason):
      log(.warning, "refused: \(reason)")
      publisher.noteRefusal(of: nil, reason)
    case .close(let ending):
      hasFailed = ending == .failure
      closeGently()
    }
  }

  /// `line` tells apart what the log says, so that it can leave out what it says too often.
  private func log(_ level: Logger.Level, _ text: String, line: UInt = #line) {
    // Whom a line is about that names no stream.
    let subject = publication == nil ? "\(publisher.protocolName) \(publisher.remoteAddress): " : ""
    publisher.logger.log(
      level: level, "\(subject)\(text)", metadata: publisher.metadata(of: publication?.stream), line: line)
  }

  // MARK: time

  private func handshakeDeadlinePassed() {
    guard session.isHandshaking, !isClosing else { return }
    log(.debug, "closed: no handshake in time")
    context?.close(promise: nil)
  }

  func publishDeadlinePassed() {
    guard publication == nil, !isClosing else { return }
    log(.info, "closed: nothing was published in time")
    refuse("nothing was published in time", .failure)
  }

  func watchIdleness(_ context: ChannelHandlerContext) {
    let check = onLoop(context) { $0.checkIdleness() }
    let interval = TimeAmount.nanoseconds(max(shared.configuration.idleTimeout / 10, 1_000_000))
    idleTimer = context.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in check() }
  }

  private func checkIdleness() {
    let silence = now &- lastRead
    guard publication != nil, silence >= shared.configuration.idleTimeout else { return }
    endPublication(.connectionLost("no byte for \(silence / 1_000_000_000) s"))
    context?.close(promise: nil)
  }

  /// Wakes the session when a wait for a track ends without input.
  private func watchGate(_ now: Int64) {
    guard gateTimer == nil, let context, let deadline = session.deadline(after: now) else { return }
    gateTimer = context.eventLoop.scheduleTask(
      in: .nanoseconds(deadline &- now), onLoop(context) { $0.gateDeadlinePassed() })
  }

  private func gateDeadlinePassed() {
    gateTimer = nil
    guard !isClosing else { return }
    let now = now
    session.tick(now: now, to: &actions)
    perform()
    watchGate(now)
  }

  /// Reads no further while messages wait that came too fast.
  private func watchPace() {
    guard paceTimer == nil, !isClosing, let context, let time = session.heldUntil else { return }
    paceTimer = context.eventLoop.scheduleTask(in: .nanoseconds(time &- now), onLoop(context) { $0.paceAllows() })
    setReading()
  }

  private func paceAllows() {
    paceTimer = nil
    guard !isClosing else { return }
    let now = now
    // It may have sent enough; nobody looked.
    lastRead = now
    session.goOn(now: now, to: &actions)
    perform()
    if paceTimer == nil { setReading() }
    watchGate(now)
  }

  /// Half-closes, and reads on for a moment: closing with bytes unread would make the system reset the connection
  /// and take our last words from the peer.
  private func closeGently() {
    guard let context, !isClosing else { return }
    isClosing = true
    deadline?.cancel()
    setReading()
    context.close(mode: .output, promise: nil)
    context.eventLoop.scheduleTask(
      in: .nanoseconds(RTMPLimits.lingerTimeout), onLoop(context) { $0.context?.close(promise: nil) })
  }

  // MARK: threads

  /// A call of this connection that may be made from any thread and happens on its event loop.
  func onLoop(
    _ context: ChannelHandlerContext, _ body: @escaping @Sendable (RTMPConnection) -> Void
  ) -> @Sendable () -> Void {
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    let loop = context.eventLoop
    return {
      if loop.inEventLoop { body(bound.value) } else { loop.execute { body(bound.value) } }
    }
  }

  func onLoopWith<Value: Sendable>(
    _ context: ChannelHandlerContext, _ body: @escaping @Sendable (RTMPConnection, Value) -> Void
  ) -> @Sendable (Value) -> Void {
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    let loop = context.eventLoop
    return { value in loop.execute { body(bound.value, value) } }
  }
}
