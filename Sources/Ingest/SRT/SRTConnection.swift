internal import Base
internal import FMP4
internal import Logging
internal import MPEGTS
internal import NIOCore
internal import Publishing

/// A caller, from its connection to its end: it is held back until the gate has admitted it, then its transport stream
/// becomes a publication. The worker sends as much of it as it has credit for. Used on its event loop.
final class SRTConnection: PublisherConnectionOwner {
  private let caller: SRTArrival
  private let stream: StreamName
  private let shared: SRTShared
  private let life: PublisherConnection
  private let loop: any EventLoop
  private weak var link: SRTLink?
  private var session: TransportPublication
  private let others: FurtherPrograms
  private var actions: [PublicationAction] = []
  /// Bytes that were taken since the last credit.
  private var taken = 0
  private var losses = LogThrottle()
  /// Packets that were given up and do not stand in the log yet.
  private var missing: UInt64 = 0
  private var holdTimer: Scheduled<Void>?
  private var tickTimer: Scheduled<Void>?
  private var isOver = false

  init(
    _ caller: SRTArrival, _ stream: StreamName, shared: SRTShared, peer: String, publisher: Publisher,
    link: SRTLink, loop: any EventLoop
  ) {
    (self.caller, self.stream, self.shared, self.link, self.loop) = (caller, stream, shared, link, loop)
    life = PublisherConnection(
      publisher, peer: peer, connections: shared.connections, clock: shared.clock,
      patience: PublisherConnection.Patience(publish: SRTLimits.idleTimeout, idle: SRTLimits.idleTimeout), loop: loop)
    session = TransportPublication(reading: shared.clock.reading, caller.programs)
    others = FurtherPrograms(
      beside: stream, of: publisher, key: caller.secret, software: caller.software, clock: shared.clock, loop: loop)
    life.owner = self
  }

  private var now: MonotonicTime { shared.clock.monotonic() }

  /// Asks the gate.
  func begin() {
    guard life.begin() else { return closeAtOnce() }
    let patience = SRTLimits.holdPatience &+ Int64(caller.latency) &* 1_000_000
    holdTimer = loop.scheduleTask(in: .nanoseconds(patience), bound { $0.holdEnded() })
    life.ask(stream, key: caller.secret, software: caller.software)
  }

  private func holdEnded() {
    guard life.publication == nil, !isOver else { return }
    let reason = "the decision about it took longer than its latency and 2 s"
    life.log(.warning, "refused: \(reason)")
    life.publisher.noteRefusal(of: stream, reason)
    refuse(reason, isFailure: false)
  }

  // MARK: the worker

  /// Takes media; `lost` packets are missing before it.
  func receive(_ bytes: ByteBuffer, after lost: UInt32) {
    guard !isOver, life.takesMedia else { return }
    let now = now
    life.heard(now: now)
    if session.awaitsStart { session.mostHeldAtStart = life.mostHeldAtStart }
    if lost > 0 {
      session.noteLoss(bytes: Int(lost) &* SRTLimits.payloadBytes)
      missing &+= UInt64(lost)
      tellMissing()
    }
    do throws(WireError) {
      try session.receive(bytes, now: now, to: &actions)
    } catch {
      return fail(error)
    }
    perform()
    taken &+= bytes.readableBytes
    if taken >= SRTLimits.credit / 4, !isOver {
      link?.send(.credit(caller.connection, bytes: UInt32(clamping: taken)))
      taken = 0
    }
    watch(now)
  }

  /// Many losses in a short time share a line. The lines' numbers add up to all that was given up.
  private func tellMissing() {
    if missing > 0, losses.tells(now: now) != nil { logMissing() }
  }

  private func logMissing() {
    guard missing > 0 else { return }
    life.log(.warning, "\(missing) packets came too late and are missing")
    missing = 0
  }

  /// Called every second.
  func measured(_ figures: LinkFigures) {
    tellMissing()
    life.publication?.sink.measured(figures)
    others.measured(figures)
  }

  /// The worker has ended the connection, or has ended itself.
  func lose(_ reason: String) {
    guard !isOver else { return }
    if life.takesMedia {
      try? session.finish(now: now, to: &actions)
      perform()
    }
    end(reason, hasFailed: false)
  }

  private func fail(_ error: WireError) {
    perform()
    life.give(.end(.failed(error.reason)), encoder: session.encoder)
    end(error.reason, hasFailed: true)
  }

  private func end(_ reason: String, hasFailed: Bool) {
    guard !isOver else { return }
    isOver = true
    logMissing()
    holdTimer?.cancel()
    tickTimer?.cancel()
    others.end(with: life.lastEnd ?? .connectionLost(reason))
    life.close()
    life.lose()
    life.finish(reason, hasFailed: hasFailed)
    link?.send(.close(caller.connection))
    link?.remove(caller.connection)
  }

  private func perform() {
    life.hold(session.heldBytes &+ others.heldBytes)
    if !actions.isEmpty {
      let batch = actions
      actions = []
      for action in batch { life.perform(action, encoder: session.encoder) }
    }
    let further = session.takeFurther()
    if further.contains(where: \.firstHasLeft) { life.leave(FurtherPrograms.gone) }
    if !further.isEmpty, !isOver { _ = others.perform(further) }
  }

  // MARK: calls of PublisherConnection

  func admitted() {
    holdTimer?.cancel()
    session.mostHeldAtStart = life.mostHeldAtStart
    link?.send(.credit(caller.connection, bytes: UInt32(SRTLimits.credit)))
  }

  /// libsrt has no way to send a reason to a caller that is connected.
  func refuse(_ reason: String, isFailure: Bool) { end(reason, hasFailed: isFailure) }

  func closeAtOnce() { end("the server closed the connection", hasFailed: false) }

  // MARK: time

  private func watch(_ now: MonotonicTime) {
    guard tickTimer == nil, !isOver, let deadline = session.deadline(after: now) else { return }
    tickTimer = loop.scheduleTask(in: .nanoseconds(deadline &- now), bound { $0.tick() })
  }

  private func tick() {
    tickTimer = nil
    guard !isOver else { return }
    let now = now
    do throws(WireError) {
      try session.tick(now: now, to: &actions)
    } catch {
      return fail(error)
    }
    perform()
    watch(now)
  }

  private func bound(_ body: @escaping @Sendable (SRTConnection) -> Void) -> @Sendable () -> Void {
    let bound = NIOLoopBound(self, eventLoop: loop)
    return { body(bound.value) }
  }
}

extension SRTArrival {
  fileprivate var secret: Secret? { key.isEmpty ? nil : Secret(key) }

  fileprivate var software: String { "SRT \(version >> 16 & 0xFF).\(version >> 8 & 0xFF).\(version & 0xFF)" }
}
