internal import FMP4
internal import Logging
internal import NIOCore

/// A publisher by WebRTC: the answer to its offer, the connection (ICE, DTLS, SRTP), and its publication. Used on the
/// listener's event loop.
final class WebRTCSession {
  /// Nanoseconds between two looks at what is due.
  private static let pulse = TimeAmount.milliseconds(20)

  let id = WebRTCSession.newID()
  let stream: StreamName
  /// The address that limits are counted by.
  let peer: String
  private let life: PublisherConnection
  private let hub: WebRTCHub
  private var negotiation: Negotiation
  private(set) var agent = ICEAgent()
  private let dtls: DTLSConnection
  private var srtp: SRTPSession?
  private var publication: WebRTCPublication
  private var actions: [PublicationAction] = []
  /// The ways that have proved themselves, oldest first, and the one that is used.
  private(set) var paths: [WebRTCPath] = []
  private var chosen: WebRTCPath?
  /// The way that the handshake takes.
  private var handshakePath: WebRTCPath?
  /// Where the newest packet came from that was made with the keys.
  private var heard: (place: STUNResponse.Place, at: MonotonicTime)?
  private var isNominated = false
  private var restarts = 0
  private var timer: RepeatedTask?
  private let begunAt: MonotonicTime
  private var isOver = false
  private var reply: EventLoopPromise<WebRTCReply>?

  init?(
    _ stream: StreamName, _ negotiation: Negotiation, publisher: Publisher, peer: String, hub: WebRTCHub,
    reply: EventLoopPromise<WebRTCReply>
  ) {
    guard let dtls = DTLSConnection(hub.shared.identity, negotiation.role) else { return nil }
    (self.stream, self.peer, self.hub, self.reply) = (stream, peer, hub, reply)
    (self.negotiation, self.dtls) = (negotiation, dtls)
    let (clock, now) = (hub.shared.clock, hub.shared.clock.monotonic())
    begunAt = now
    publication = WebRTCPublication(negotiation, reading: clock.reading, now: now)
    life = PublisherConnection(
      publisher, peer: peer, connections: hub.shared.connections, clock: clock,
      patience: PublisherConnection.Patience(
        publish: WebRTCLimits.connectDeadline, idle: WebRTCLimits.idleTimeout), loop: hub.loop)
    life.owner = self
  }

  private static func newID() -> String {
    (0..<2).map { _ in
      let digits = String(UInt64.random(in: .min ... .max), radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }

  private var now: MonotonicTime { hub.shared.clock.monotonic() }

  /// Whether media may come.
  var isConnected: Bool { srtp != nil }

  /// Whether packets made with the keys come from a place.
  func hears(_ place: STUNResponse.Place) -> Bool {
    heard.map { $0.place == place && now &- $0.at < WebRTCLimits.placeHold } ?? false
  }

  /// Changes with each restart of ICE (RFC 9725 §4.3.1).
  var entityTag: String { "\"\(id.prefix(8))-\(restarts)\"" }

  func begin(key: Secret?, software: String) {
    guard life.begin() else { return end(.ended("the server is shutting down")) }
    life.ask(
      stream, key: key, software: software, keyFrames: negotiation.asksForKeyFrames ? .asAsked : .asItsEncoderHasThem)
  }

  private var answer: SessionAnswer {
    SessionAnswer(
      negotiation: negotiation, agent: agent, fingerprint: hub.shared.identity.fingerprint,
      candidates: hub.candidates, session: UInt64(id.prefix(16), radix: 16) ?? 1)
  }

  /// Takes a fragment of an offer. Candidates are passed over: a lite agent calls nobody. Returns the fragment of an answer if
  /// ICE begins again.
  func receive(_ fragment: SessionOffer) -> String? {
    guard let name = fragment.fragment, name != negotiation.fragment else { return nil }
    negotiation.fragment = name
    restarts += 1
    let old = agent.fragment
    agent.restart()
    isNominated = false
    hub.rename(self, from: old)
    return answer.fragment
  }

  // MARK: datagrams

  /// A request that names this session.
  func receive(_ message: STUNMessage, size: Int, on path: WebRTCPath) {
    guard !isOver else { return }
    switch agent.receive(message, from: path.place, size: size) {
    case .ignored: break
    case .refused(let response): path.send(response)
    case .proved(let response, let nominates):
      path.send(response)
      prove(path)
      if nominates || !isNominated {
        chosen = path
        isNominated = isNominated || nominates
        if negotiation.role == .client, dtls.state == .connecting, srtp == nil {
          advance(answering: path) { dtls.start() }
        }
      }
    }
  }

  private func prove(_ path: WebRTCPath) {
    // Also a known one: another session may have claimed its place.
    hub.add(self, at: path.place)
    guard !paths.contains(where: path.isSame) else { return }
    paths.append(path)
    guard paths.count > WebRTCLimits.paths, let index = paths.firstIndex(where: { !$0.isSame(as: chosen) })
    else { return }
    let oldest = paths.remove(at: index)
    hub.remove(self, at: oldest.place)
    if oldest.address == nil { oldest.channel.close(promise: nil) }
  }

  /// A way is closed.
  func lose(_ path: WebRTCPath) {
    paths.removeAll(where: path.isSame)
    if path.isSame(as: chosen) { chosen = paths.last }
    if path.isSame(as: handshakePath) { handshakePath = nil }
  }

  /// Any other datagram from an address that has proved itself.
  func receive(_ datagram: ByteBuffer, on path: WebRTCPath) {
    guard !isOver, let first: UInt8 = datagram.getInteger(at: datagram.readerIndex),
      let second: UInt8 = datagram.getInteger(at: datagram.readerIndex + 1)
    else { return }
    switch first {
    case 20...63: advance(answering: path) { dtls.receive(datagram, from: path.place) }
    case 128...191: receive(media: datagram, isControl: RTCPReader.isPossible(second), from: path.place)
    default: break
    }
  }

  private func receive(media datagram: ByteBuffer, isControl: Bool, from place: STUNResponse.Place) {
    guard let srtp else { return }
    let now = now
    if isControl {
      guard let clear = srtp.open(rtcp: datagram) else { return }
      heard = (place, now)
      publication.receive(rtcp: clear, now: now, to: &actions)
      performAll()
      if !isOver, publication.hasEnded { end(.lost("the publisher said that it ends")) }
    } else {
      guard let source = RTPPacket.source(of: datagram), publication.takes(source: source),
        let clear = srtp.open(rtp: datagram)
      else { return }
      heard = (place, now)
      // Media alone keeps the publisher: reports without it would keep its name for ever.
      step { publication, out throws(WireError) in
        if try publication.receive(rtp: clear, now: now, to: &out) { life.heard(now: now) }
      }
    }
  }

  // MARK: the handshake

  /// What answers a datagram goes where that came from: the cookie proves that address, and no other.
  private func advance(answering path: WebRTCPath? = nil, _ body: () -> Void) {
    let before = dtls.state
    body()
    let datagrams = dtls.takeOutgoing()
    if let path, !datagrams.isEmpty { handshakePath = path }
    for datagram in datagrams { (handshakePath ?? chosen)?.send(datagram) }
    guard dtls.state != before, !isOver else { return }
    switch dtls.state {
    case .connecting: break
    case .connected: secure()
    case .closed: end(.lost("the publisher has closed its connection"))
    case .failed: end(isConnected ? .lost("its DTLS connection failed") : .broken("its DTLS handshake failed"))
    }
  }

  private func secure() {
    guard dtls.hasPeer(negotiation.fingerprint) else {
      return end(.broken("its certificate is not the one of its offer (a=fingerprint)"))
    }
    guard let keys = dtls.keys else { return end(.broken("it takes neither AES-GCM nor AES-CM with SHA-1 for SRTP")) }
    let isServer = negotiation.role == .server
    srtp = SRTPSession(
      profile: keys.profile, inbound: isServer ? keys.client : keys.server,
      outbound: isServer ? keys.server : keys.client)
    guard srtp != nil else { return end(.broken("the keys of SRTP cannot be used")) }
    hub.connected(self)
    life.heard(now: now)
  }

  // MARK: time

  private func watchTime() {
    let bound = NIOLoopBound(self, eventLoop: hub.loop)
    timer = hub.loop.scheduleRepeatedTask(initialDelay: Self.pulse, delay: Self.pulse) { _ in bound.value.tick() }
  }

  private func tick() {
    guard !isOver else { return }
    let now = now
    guard let srtp else {
      if now &- begunAt >= WebRTCLimits.connectDeadline {
        return end(.broken("no connection within \(WebRTCLimits.connectDeadline / 1_000_000_000) s"))
      }
      return advance { dtls.tick() }
    }
    var datagrams: [ByteBuffer] = []
    step { publication, out throws(WireError) in datagrams = try publication.tick(now: now, to: &out) }
    guard !isOver else { return }
    for datagram in datagrams {
      if let closed = srtp.close(rtcp: datagram) { chosen?.send(closed) }
    }
  }

  private func step(_ body: (inout WebRTCPublication, inout [PublicationAction]) throws(WireError) -> Void) {
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
    for action in batch where !isOver {
      switch action {
      case .event(let event): life.give(event, encoder: publication.encoder)
      case .lost(let kind): life.publication?.sink.lost(kind)
      case .inBand(let event): life.publication?.sink.carries(event)
      case .warn(let warning): life.publication?.sink.warn(warning)
      case .withdraw(let warning): life.publication?.sink.withdraw(warning)
      case .log(let level, let text): life.log(level, text)
      }
    }
  }

  // MARK: the end

  /// The publisher ends its stream (DELETE).
  func finish() {
    life.give(.end(.finished), encoder: publication.encoder)
    end(.lost(""))
  }

  private enum End {
    /// The publisher is gone. Its stream waits for it.
    case lost(String)
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
    dtls.close()
    for datagram in dtls.takeOutgoing() { chosen?.send(datagram) }
    let (reason, hasFailed): (String, Bool) =
      switch cause {
      case .lost(let reason): (reason, false)
      case .broken(let reason): (reason, true)
      case .ended(let reason): (reason, false)
      case .refused(let refusal, let isFailure): (refusal.publicDescription, isFailure)
      }
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
    hub.remove(self)
    for path in paths where path.address == nil { path.channel.close(promise: nil) }
    paths = []
    (chosen, handshakePath) = (nil, nil)
  }
}

extension WebRTCSession: PublisherConnectionOwner {
  func admitted() {
    publication.keyFrameDistance = life.publication?.sink.keyFrameDistance?.nanoseconds
    watchTime()
    reply.take()?.succeed(.answered(WebRTCAnswer(description: answer.text, session: id, entityTag: entityTag)))
  }

  func refuse(_ refusal: PublishRefusal, isFailure: Bool) { end(.refused(refusal, isFailure: isFailure)) }
  func refuse(_ reason: String, isFailure: Bool) { end(isFailure ? .broken(reason) : .ended(reason)) }
  func keyFrameWanted() { publication.wantKeyFrame() }
  func closeAtOnce() { end(.lost("nothing came any more")) }
}
