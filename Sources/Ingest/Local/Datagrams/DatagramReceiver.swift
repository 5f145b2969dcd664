internal import Base
internal import FMP4
internal import Logging
internal import MPEGTS
internal import NIOCore
internal import Publishing
internal import Synchronization

/// Takes the datagrams of a socket. It follows one sender at a time: the first whose datagrams hold a transport stream, as
/// long as it sends. Others can neither replace nor disturb it. Several receivers of a socket get each datagram. Runs on
/// its event loop.
final class DatagramReceiver: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = AddressedEnvelope<ByteBuffer>
  typealias OutboundIn = AddressedEnvelope<ByteBuffer>

  private let name: StreamName
  private let place: DatagramPlace
  private let gate: any PublishGate
  private let clock: SteadyClock
  private let logger: Logger
  private let figures: ReceptionFigures
  /// Why the socket is closed.
  private let ending: @Sendable () -> EndReason
  private var session: DatagramSession?
  private var pausedUntil: MonotonicTime?
  /// The last sender whose stream could not be used.
  private var shunned: (sender: SocketAddress, until: MonotonicTime)?
  private var troubles = LogThrottle()
  private var check: RepeatedTask?
  /// When the loop was last seen at work, and since when without standing still.
  private var seen: MonotonicTime
  private var running: MonotonicTime
  /// Reads of the socket so far, and whether it is to be closed.
  private var reads = 0
  private var isClosing = false
  /// Fulfilled when nothing more is received.
  var ended: EventLoopPromise<Void>?

  init(
    _ name: StreamName, _ place: DatagramPlace, gate: any PublishGate, clock: SteadyClock, logger: Logger,
    figures: ReceptionFigures, ending: @escaping @Sendable () -> EndReason
  ) {
    self.name = name
    self.place = place
    self.gate = gate
    self.clock = clock
    self.logger = logger
    self.figures = figures
    self.ending = ending
    (seen, running) = (clock.monotonic(), clock.monotonic())
  }

  // MARK: the channel

  func handlerAdded(context: ChannelHandlerContext) {
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    let interval = TimeAmount.nanoseconds(DatagramLimits.check)
    check = context.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in
      bound.value.checkSilence()
    }
  }

  /// Takes what lies in the socket before it is closed: the end of a stream may have come while the event loop was busy.
  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    guard !isClosing else { return context.close(mode: mode, promise: promise) }
    isClosing = true
    let bound = NIOLoopBound((self, context.channel), eventLoop: context.eventLoop)
    drain(bound, mode, promise, turns: DatagramLimits.closingTurns)
  }

  private func drain(
    _ bound: NIOLoopBound<(DatagramReceiver, any Channel)>, _ mode: CloseMode,
    _ promise: EventLoopPromise<Void>?, turns: Int
  ) {
    let before = reads
    // The loop reads what has come before a task of a later time.
    bound.value.1.eventLoop.scheduleTask(in: .nanoseconds(DatagramLimits.closingTurn)) {
      let (receiver, channel) = bound.value
      // By the channel: the receiver may have left it meanwhile, and its context closes nothing then.
      if receiver.reads == before || turns <= 1 { return channel.close(mode: mode, promise: promise) }
      receiver.drain(bound, mode, promise, turns: turns - 1)
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    reads &+= 1
    context.fireChannelReadComplete()
  }

  func channelInactive(context: ChannelHandlerContext) {
    finish()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    finish()
    ended.take()?.succeed()
  }

  private func finish() {
    check?.cancel()
    session.take()?.end(ending())
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    logger.warning("receiving at \(place.text): \(error)")
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    receive(unwrapInboundIn(data), context.eventLoop)
    context.fireChannelRead(data)
  }

  private func receive(_ envelope: AddressedEnvelope<ByteBuffer>, _ loop: any EventLoop) {
    let now = look()
    guard isAwaited(envelope.remoteAddress) else { return count(\.unfollowed, of: envelope.remoteAddress) }
    guard let packets = TransportDatagram.packets(in: envelope.data) else {
      return count(\.foreign, of: envelope.remoteAddress)
    }
    guard let session = session(of: envelope.remoteAddress, now, loop) else { return }
    figures.update { status in
      status.datagrams &+= 1
      status.bytes &+= Int64(packets.readableBytes)
    }
    session.receive(packets)
  }

  private func isAwaited(_ sender: SocketAddress) -> Bool {
    place.sender.map { NetworkAddress($0) == NetworkAddress(sender) } ?? true
  }

  // MARK: senders

  /// The sender's session. Nil if it is not followed now.
  private func session(
    of sender: SocketAddress, _ now: MonotonicTime, _ loop: any EventLoop
  ) -> DatagramSession? {
    if let present = session {
      if present.sender == sender { return present }
      guard silence(of: present, now) >= DatagramLimits.handover else {
        count(\.unfollowed, of: sender)
        return nil
      }
      end(present, "\(PeerText.place(of: sender)) sends instead of it")
    }
    if let pausedUntil, now < pausedUntil { return nil }
    pausedUntil = nil
    if let shunned, shunned.sender == sender, now < shunned.until {
      count(\.unfollowed, of: sender)
      return nil
    }
    let text = PeerText.place(of: sender)
    let publisher = Publisher(
      protocolName: "udp", remoteAddress: text, host: NetworkAddress(sender)?.hostText, gate: gate, logger: logger)
    let new = DatagramSession(
      of: sender, publisher, stream: name, program: place.program, clock: clock, loop: loop
    ) { [weak self] in self?.closed($0) }
    session = new
    figures.update { ($0.state, $0.sender) = (.receiving, text) }
    return new
  }

  private func end(_ session: DatagramSession, _ reason: String) {
    keepCounts(of: session)
    self.session = nil
    figures.update { $0.state = .waiting }
    session.end(.connectionLost(reason))
  }

  private func closed(_ closure: DatagramSession.Closure) {
    guard let closed = session else { return }
    keepCounts(of: closed)
    session = nil
    let now = clock.monotonic()
    let reason: String
    switch closure {
    case .unusable(let why):
      reason = why
      shunned = (closed.sender, now &+ DatagramLimits.shunning)
      figures.update { $0.state = .waiting }
    case .unwanted(let why):
      reason = why
      pausedUntil = now &+ DatagramLimits.pause
      figures.update { $0.state = .paused(why) }
    }
    guard let untold = troubles.tells(now: now) else { return }
    logger.warning("the stream of \(PeerText.place(of: closed.sender)) is not taken: \(reason)\(untold)")
  }

  /// The time. After a halt of the loop, what the sender sent meanwhile may lie in the socket behind what others sent.
  private func look() -> MonotonicTime {
    let now = clock.monotonic()
    if now &- seen > DatagramLimits.halt { running = now }
    seen = now
    return now
  }

  /// Nanoseconds without a datagram of the sender, in which the loop could have read one.
  private func silence(of session: DatagramSession, _ now: MonotonicTime) -> Int64 {
    now &- max(session.lastHeard, running)
  }

  private func checkSilence() {
    let now = look()
    guard let session else {
      if let pausedUntil, now >= pausedUntil { figures.update { $0.state = .waiting } }
      return
    }
    keepCounts(of: session)
    let silence = silence(of: session, now)
    guard silence >= DatagramLimits.silence else { return }
    end(session, "no datagram for \(silence / 1_000_000_000) s")
  }

  // MARK: figures

  private func keepCounts(of session: DatagramSession) {
    let counts = session.counts
    figures.update { status in
      (status.packets, status.gaps) = (counts.packets, counts.gaps)
      (status.damaged, status.scrambled) = (counts.damagedPackets, counts.scrambled)
    }
  }

  /// Counts a datagram that is dropped. The 1st, 10th, 100th … is logged.
  private func count(_ counter: WritableKeyPath<ReceptionStatus, Int64>, of sender: SocketAddress) {
    let count = figures.update { status in
      status[keyPath: counter] &+= 1
      return status[keyPath: counter]
    }
    guard count == 1 || String(count).count > String(count - 1).count else { return }
    let what = counter == \.foreign ? "without packets of MPEG-TS" : "of other senders"
    logger.warning(
      "\(count) datagram\(count == 1 ? "" : "s") \(what) dropped, the last from \(PeerText.place(of: sender))")
  }
}

/// The status while it is collected.
final class ReceptionFigures: Sendable {
  private let state = Mutex(ReceptionStatus())

  var status: ReceptionStatus { state.withLock { $0 } }

  func update<Result: Sendable>(_ change: (inout ReceptionStatus) -> Result) -> Result {
    state.withLock { change(&$0) }
  }
}
