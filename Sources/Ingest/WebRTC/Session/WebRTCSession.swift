internal import Base
internal import FMP4
internal import Logging
internal import NIOCore
internal import Publishing

/// A publisher by WebRTC: the answer to its offer, the connection, and its publication. Used on the listener's event loop.
final class WebRTCSession {
  /// Between two looks at what is due.
  private static let pulse = TimeAmount.milliseconds(20)
  /// Nanoseconds between two looks by which it shows that this process did not run.
  private static let stall: Int64 = 100_000_000

  let transport: WebRTCTransport
  private let life: PublisherConnection
  private let hub: WebRTCHub
  private let negotiation: Negotiation
  private var publication: WebRTCPublication
  private var actions: [PublicationAction] = []
  private var timer: RepeatedTask?
  private var lookedAt: MonotonicTime?
  private let begunAt: MonotonicTime
  private var isOver = false
  private var reply: EventLoopPromise<WebRTCReply>?

  init?(
    _ stream: StreamName, _ negotiation: Negotiation, publisher: Publisher, peer: String, hub: WebRTCHub,
    reply: EventLoopPromise<WebRTCReply>
  ) {
    guard let transport = WebRTCTransport(stream, .publishing, negotiation.transport, peer: peer, in: hub) else {
      return nil
    }
    (self.transport, self.hub, self.reply, self.negotiation) = (transport, hub, reply, negotiation)
    let (clock, now) = (hub.shared.clock, hub.shared.clock.monotonic())
    begunAt = now
    publication = WebRTCPublication(negotiation, reading: clock.reading, now: now)
    life = PublisherConnection(
      publisher, peer: peer, connections: hub.shared.connections, clock: clock,
      patience: PublisherConnection.Patience(
        publish: WebRTCLimits.connectDeadline, idle: WebRTCLimits.idleTimeout), loop: hub.loop)
    life.owner = self
    transport.owner = self
  }

  private var now: MonotonicTime { hub.shared.clock.monotonic() }

  func begin(key: Secret?, software: String) {
    guard life.begin() else { return end(.ended("the server is shutting down")) }
    life.ask(
      transport.stream, key: key, software: software,
      keyFrames: negotiation.asksForKeyFrames ? .asAsked : .asItsEncoderHasThem, connection: .awaited)
  }

  // MARK: time

  private func watchTime() {
    let bound = NIOLoopBound(self, eventLoop: hub.loop)
    timer = hub.loop.scheduleRepeatedTask(initialDelay: Self.pulse, delay: Self.pulse) { _ in bound.value.tick() }
  }

  private func tick() {
    guard !isOver else { return }
    let now = now
    guard transport.isConnected else {
      if now &- begunAt >= WebRTCLimits.connectDeadline {
        return end(.broken("no connection within \(WebRTCLimits.connectDeadline / 1_000_000_000) s"))
      }
      return transport.tick()
    }
    if let before = lookedAt, now &- before >= Self.stall {
      publication.pardon(now &- before &- Self.pulse.nanoseconds, now: now)
    }
    lookedAt = now
    life.hold(publication.heldBytes)
    var datagrams: [ByteBuffer] = []
    step { publication, out throws(WireError) in datagrams = try publication.tick(now: now, to: &out) }
    guard !isOver else { return }
    for datagram in datagrams { transport.send(rtcp: datagram) }
  }

  private func step(_ body: (inout WebRTCPublication, inout [PublicationAction]) throws(WireError) -> Void) {
    if publication.publication.awaitsStart { publication.publication.held.most = life.mostHeldAtStart }
    do throws(WireError) {
      try body(&publication, &actions)
      performAll()
    } catch {
      performAll()
      life.give(.end(.failed(error.reason)), encoder: publication.encoder)
      end(.broken(error.reason))
    }
  }

  private func performAll() {
    guard !actions.isEmpty else { return }
    let batch = actions
    actions.removeAll(keepingCapacity: batch.count < 64)
    for action in batch where !isOver { life.perform(action, encoder: publication.encoder) }
  }

  // MARK: the end

  /// Takes what waits behind a time that may be wrong: nothing more comes.
  private func takeRest() {
    guard !isOver else { return }
    publication.finish(to: &actions)
    performAll()
  }

  private enum End {
    /// The publisher is gone. Its stream waits for it.
    case lost(String)
    /// It was given up. Its stream waits for it.
    case silent(String)
    /// It broke the rules.
    case broken(String)
    /// The server ended it.
    case ended(String)
    case refused(PublishRefusal, isFailure: Bool)
  }

  private func end(_ cause: End) {
    guard !isOver else { return }
    isOver = true
    timer?.cancel()
    let (reason, hasFailed): (String, Bool) =
      switch cause {
      case .lost(let reason), .silent(let reason): (reason, false)
      case .broken(let reason): (reason, true)
      case .ended(let reason): (reason, false)
      case .refused(let refusal, let isFailure): (refusal.publicDescription, isFailure)
      }
    // Without an answer nobody knows the session.
    if case .lost = cause { transport.close() } else { transport.close(because: reply == nil ? reason : nil) }
    if case .broken = cause, life.publication != nil { life.log(.warning, "closed: \(reason)") }
    if let reply = reply.take() {
      if case .refused(let refusal, _) = cause {
        reply.succeed(.refused(refusal))
      } else {
        reply.succeed(.ended(reason))
      }
    }
    life.lose()
    life.finish(reason, hasFailed: hasFailed)
  }
}

extension WebRTCSession: WebRTCTransportOwner {
  func secured() { life.connected() }

  func takes(source: UInt32) -> Bool { publication.takes(source: source) }

  func receive(rtp clear: ByteBuffer, now: MonotonicTime) {
    // Media alone keeps the publisher: reports without it would keep its name for ever.
    step { publication, out throws(WireError) in
      if try publication.receive(rtp: clear, now: now, to: &out) { life.heard(now: now) }
    }
  }

  func receive(rtcp clear: ByteBuffer, now: MonotonicTime) {
    publication.receive(rtcp: clear, now: now, to: &actions)
    performAll()
    if !isOver, publication.hasEnded {
      takeRest()
      end(.lost("the publisher said that it ends"))
    }
  }

  func failed(_ fault: WebRTCTransport.Fault) {
    switch fault {
    case .lost(let reason):
      takeRest()
      end(.lost(reason))
    case .broken(let reason): end(.broken(reason))
    }
  }

  func end(because reason: String) { end(.ended(reason)) }

  /// The publisher ends its stream (DELETE).
  func finish() {
    takeRest()
    life.give(.end(.finished), encoder: publication.encoder)
    end(.lost(""))
  }
}

extension WebRTCSession: PublisherConnectionOwner {
  func admitted() {
    hub.admitted(transport)
    publication.keyFrameDistance = life.publication?.sink.keyFrameDistance?.nanoseconds
    publication.publication.held.most = life.mostHeldAtStart
    watchTime()
    let answer = SessionAnswer(
      negotiation: negotiation, agent: transport.agent, fingerprint: hub.shared.identity.fingerprint,
      candidates: hub.candidates, session: transport.number)
    reply.take()?.succeed(
      .answered(WebRTCAnswer(description: answer.text, session: transport.id, entityTag: transport.entityTag)))
  }

  func refuse(_ refusal: PublishRefusal, isFailure: Bool) { end(.refused(refusal, isFailure: isFailure)) }
  func refuse(_ reason: String, isFailure: Bool) { end(isFailure ? .broken(reason) : .ended(reason)) }
  func keyFrameWanted() { publication.requestKeyFrame() }
  func closeAtOnce() { end(.silent("nothing came any more")) }
}
