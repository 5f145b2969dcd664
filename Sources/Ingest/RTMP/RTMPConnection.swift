internal import Base
internal import FMP4
internal import Glibc
internal import Logging
internal import NIOCore
internal import Publishing

/// One connection. Moves bytes between the socket and an `RTMPSession`, and handles its timers. `PublisherConnection`
/// has the parts common to all protocols. Runs on its event loop.
final class RTMPConnection: ChannelInboundHandler, PublisherConnectionOwner {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let shared: RTMPListener.Shared
  private let life: PublisherConnection
  private var session: RTMPSession
  private var actions: [RTMPAction] = []
  private var spare: [RTMPAction] = []
  private var context: ChannelHandlerContext?
  private var hasFailed = false
  private var lossReason = "the publisher closed the connection without ending the stream"
  private var handshakeDeadline: Scheduled<Void>?
  private var gateTimer: Scheduled<Void>?
  /// Runs while messages that came too fast wait.
  private var paceTimer: Scheduled<Void>?
  /// Not over TLS: the system would count the bytes of its records, and a part of one wakes nothing.
  private let mayCollect: Bool
  /// Bytes that the system collects before it wakes this connection, and the time of the last read.
  private var collected = 1
  private var readAt = MonotonicTime.zero
  /// Looks whether this connection has fallen silent. Nil until something is collected.
  private var watch: CollectingWatch?

  /// `peer` is the address that limits are counted by.
  init(shared: RTMPListener.Shared, peer: String, publisher: Publisher, isEncrypted: Bool, loop: any EventLoop) {
    self.shared = shared
    mayCollect = !isEncrypted
    life = PublisherConnection(
      publisher, peer: peer, connections: shared.connections, clock: shared.clock,
      patience: PublisherConnection.Patience(
        publish: shared.configuration.publishDeadline, idle: shared.configuration.idleTimeout), loop: loop)
    session = RTMPSession(reading: shared.clock.reading)
    life.owner = self
  }

  private var now: MonotonicTime { shared.clock.monotonic() }

  // MARK: the channel

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    guard life.begin() else { return context.close(promise: nil) }
    // Silent connections are closed early, to make room for others of the address.
    handshakeDeadline = context.eventLoop.scheduleTask(
      in: .nanoseconds(shared.configuration.handshakeDeadline), onLoop(context) { $0.handshakeDeadlinePassed() })
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
    if life.publication == nil { life.log(.debug, "\(error)") }
    context.close(promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if life.isClosing { return }
    var bytes = unwrapInboundIn(data)
    let now = now
    life.heard(now: now)
    if session.awaitsStart { session.mostHeldAtStart = life.mostHeldAtStart }
    session.receive(&bytes, now: now, to: &actions)
    perform()
    watchGate(now)
    readAt = now
    if mayCollect { collect(life.isClosing ? 1 : bytesToCollect(now)) }
  }

  /// Stops reading from a peer that does not read its responses.
  func channelWritabilityChanged(context: ChannelHandlerContext) {
    setReading()
    context.fireChannelWritabilityChanged()
  }

  private func setReading() {
    guard let context else { return }
    let isReading = life.isClosing || !life.isAsking && paceTimer == nil && context.channel.isWritable
    context.channel.setOption(.autoRead, value: isReading).whenFailure { _ in }
  }

  /// Ends the connection's state, whichever side closed it.
  private func finish() {
    guard context != nil else { return }
    context = nil
    life.lose()
    handshakeDeadline?.cancel()
    gateTimer?.cancel()
    paceTimer?.cancel()
    watch?.remove(self)
    if !life.isClosing {
      session.takeRest(now: now, to: &actions)
      perform()
    }
    life.finish(lossReason, hasFailed: hasFailed)
  }

  // MARK: calls of PublisherConnection

  func admitted() {
    setBuffers(
      read: RTMPLimits.readSizeWhilePublishing, answers: RTMPLimits.pendingAnswerBytesWhilePublishing)
    session.mostHeldAtStart = life.mostHeldAtStart
    session.admit(now: now, to: &actions)
    perform()
    setReading()
  }

  func refuse(_ reason: String, isFailure: Bool) {
    guard context != nil, !life.isClosing else { return }
    session.refuse(reason: reason, ending: isFailure ? .failure : .quiet, to: &actions)
    perform()
  }

  func closeAtOnce() { context?.close(promise: nil) }

  /// Sets how many bytes are read at a time, and how many of responses may wait.
  private func setBuffers(read: Int, answers: Int) {
    guard let channel = context?.channel else { return }
    channel.setOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: read)).whenFailure { _ in }
    channel.setOption(.writeBufferWaterMark, value: .answers(answers)).whenFailure { _ in }
  }

  // MARK: actions of the session

  private func perform() {
    life.hold(session.heldBytes)
    while !actions.isEmpty {
      // Deliveries may add new actions; they are done after these.
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
    case .media(let action):
      life.perform(action, encoder: session.encoder)
      if case .event(.end) = action {
        setBuffers(read: RTMPLimits.readSizeBeforePublish, answers: RTMPLimits.pendingAnswerBytesBeforePublish)
      }
    case .ask(let intent):
      life.ask(intent.stream, key: intent.key, software: intent.software)
      setReading()
    case .log(let level, let text): life.log(level, text)
    case .refused(let reason):
      life.log(.warning, "refused: \(reason)")
      life.publisher.noteRefusal(of: nil, reason)
    case .close(let ending):
      hasFailed = ending == .failure
      closeGently()
    }
  }

  // MARK: bytes that the system collects

  private func bytesToCollect(_ now: MonotonicTime) -> Int {
    let bytes = session.bytesToCollect(now: now)
    // Who gets samples as they come would hear where audio waited for a frame that came late.
    guard bytes > 1, life.publication?.sink.passesSamplesOn == true else { return bytes }
    session.collectNothing()
    return session.bytesToCollect(now: now)
  }

  /// Has the system collect so many bytes before it wakes this connection. The end of the input wakes it at any rate.
  private func collect(_ bytes: Int) {
    guard bytes != collected, let context else { return }
    let option = ChannelOptions.Types.SocketOption(level: .socket, name: .init(rawValue: SO_RCVLOWAT))
    guard (try? context.channel.syncOptions?.setOption(option, value: bytes)) != nil else { return }
    collected = bytes
    guard bytes > 1, watch == nil else { return }
    watch = shared.watches.watch(on: context.eventLoop)
    watch?.add(self)
  }

  /// After a silence, what was collected is read. Called by the watch.
  func checkCollected() {
    guard collected > 1, now &- readAt >= RTMPLimits.collectingSilence else { return }
    collect(1)
  }

  // MARK: time

  private func handshakeDeadlinePassed() {
    guard session.isHandshaking, !life.isClosing else { return }
    life.log(.debug, "closed: no handshake in time")
    context?.close(promise: nil)
  }

  /// Schedules a call of the session at the end of a wait for a track.
  private func watchGate(_ now: MonotonicTime) {
    guard gateTimer == nil, let context, let deadline = session.deadline(after: now) else { return }
    gateTimer = context.eventLoop.scheduleTask(
      in: .nanoseconds(deadline &- now), onLoop(context) { $0.gateDeadlinePassed() })
  }

  private func gateDeadlinePassed() {
    gateTimer = nil
    guard !life.isClosing else { return }
    let now = now
    session.tick(now: now, to: &actions)
    perform()
    watchGate(now)
  }

  /// Stops reading while messages that came too fast wait.
  private func watchPace() {
    guard paceTimer == nil, !life.isClosing, let context, let time = session.heldUntil else { return }
    paceTimer = context.eventLoop.scheduleTask(in: .nanoseconds(time &- now), onLoop(context) { $0.paceAllows() })
    setReading()
  }

  private func paceAllows() {
    paceTimer = nil
    guard !life.isClosing else { return }
    let now = now
    // The peer may have sent enough data while reading was off.
    life.heard(now: now)
    session.goOn(now: now, to: &actions)
    perform()
    if paceTimer == nil { setReading() }
    watchGate(now)
  }

  /// Half-closes and continues to read for a moment. If bytes were left unread, the system would reset the connection
  /// and the peer would lose the last response.
  private func closeGently() {
    guard let context, !life.isClosing else { return }
    life.close()
    setReading()
    context.close(mode: .output, promise: nil)
    context.eventLoop.scheduleTask(
      in: .nanoseconds(RTMPLimits.lingerTimeout), onLoop(context) { $0.context?.close(promise: nil) })
  }

  // MARK: threads

  /// Wraps a call of this connection so that any thread may make it; it runs on the event loop.
  private func onLoop(
    _ context: ChannelHandlerContext, _ body: @escaping @Sendable (RTMPConnection) -> Void
  ) -> @Sendable () -> Void {
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    let loop = context.eventLoop
    return {
      if loop.inEventLoop { body(bound.value) } else { loop.execute { body(bound.value) } }
    }
  }
}
