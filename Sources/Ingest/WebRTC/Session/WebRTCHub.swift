internal import Base
internal import Logging
internal import NIOCore
internal import Publishing

/// The sessions of a listener, and which of them a datagram is for. Used on one event loop.
final class WebRTCHub: WebRTCDirectory {
  /// What all sessions share.
  struct Shared: Sendable {
    var gate: any PublishGate
    var clock: SteadyClock
    var logger: Logger
    var configuration: WebRTCConfiguration
    var connections: ConnectionRegistry
    var identity: DTLSIdentity
  }

  /// A session and its way to the peer.
  private struct Entry {
    let transport: WebRTCTransport
    let owner: any WebRTCTransportOwner
  }

  let shared: Shared
  let loop: any EventLoop
  /// Where peers reach this listener.
  var candidates: [ICECandidate] = []
  /// What viewers of this listener watch.
  private(set) lazy var relays = StreamRelays(shared.clock, on: loop)
  /// Packets of the viewer that is served now.
  let batch = PacketBatch()
  private var sessions: [String: Entry] = [:]
  private var byFragment: [String: WebRTCTransport] = [:]
  private var byPlace: [STUNResponse.Place: WebRTCTransport] = [:]
  /// Sessions that are not connected, oldest first, and their number by the address that offered. Those of viewers keep no
  /// publisher away.
  private var unconnected: [WebRTCTransport] = []
  private var waiting: [WebRTCTransport.Purpose: AddressCount]
  /// Connections by TCP beyond one of each session.
  private var connections: AddressCount
  private var isClosing = false
  private var ended = EndedSessions()

  var identity: DTLSIdentity { shared.identity }
  var clock: SteadyClock { shared.clock }
  var logger: Logger { shared.logger }

  init(_ shared: Shared, on loop: any EventLoop) {
    (self.shared, self.loop) = (shared, loop)
    let sessions = AddressCount(perAddress: WebRTCLimits.unconnectedPerAddress, inAll: .max)
    waiting = [.publishing: sessions, .watching: sessions]
    let most = shared.configuration.connections
    connections = AddressCount(
      perAddress: min(WebRTCLimits.connectionsPerAddress, max(4, most / 4)), inAll: most)
  }

  // MARK: offers

  /// The address of a client, as limits are counted by it.
  private func place(of client: WebRTCClient) -> (peer: String, host: String?, isProxied: Bool) {
    let isProxied = shared.configuration.proxies.contains(NetworkAddress(client.address))
    let host = (isProxied ? client.client : NetworkAddress(client.address))?.hostText
    return (host ?? PeerText.unknown, host, isProxied)
  }

  private func mayWait(_ peer: String, _ purpose: WebRTCTransport.Purpose) -> Bool {
    waiting[purpose]?.hasShare(for: peer) == true
  }

  /// Where as many wait to be connected as may, the oldest one gives way, of an address that has most. Publishers whose keys are not
  /// judged yet count apart: they push out nobody whose key was right.
  private func makeRoom(for purpose: WebRTCTransport.Purpose, admitted isAdmitted: Bool = true) {
    let most = purpose == .publishing ? shared.configuration.waitingPublishers : WebRTCLimits.unconnected
    var places = AddressCount(perAddress: .max, inAll: most)
    let rivals = unconnected.filter { $0.purpose == purpose && $0.isAdmitted == isAdmitted }
    for session in rivals { _ = places.admit(session.peer) }
    guard places.isFull else { return }
    let largest = places.largest
    guard let oldest = rivals.first(where: { largest.contains($0.peer) }) else { return }
    sessions[oldest.id]?.owner.end(because: "it had not connected, and others needed its place")
  }

  /// A publisher is admitted, and waits to be connected from now on.
  func admitted(_ session: WebRTCTransport) {
    makeRoom(for: .publishing)
    session.isAdmitted = true
  }

  private func add(_ transport: WebRTCTransport, _ owner: any WebRTCTransportOwner) {
    sessions[transport.id] = Entry(transport: transport, owner: owner)
    byFragment[transport.agent.fragment] = transport
    if waiting[transport.purpose]?.admit(transport.peer) == true { unconnected.append(transport) }
  }

  /// Takes an offer. `reply` is completed once.
  func take(
    _ offer: String, for stream: StreamName, key: Secret?, of client: WebRTCClient,
    reply: EventLoopPromise<WebRTCReply>
  ) {
    let (peer, host, isProxied) = place(of: client)
    guard mayWait(peer, .publishing) else { return reply.succeed(.tooManyWaiting) }
    let negotiation: Negotiation
    do throws(OfferError) {
      negotiation = try Negotiation(
        try SessionOffer(offer), shared.configuration.mayEncodeAnew(stream) ? .allowed : .refused)
    } catch {
      return reply.succeed(.notTaken(error))
    }
    guard
      shared.connections.arrive(peer, isProxy: isProxied && host == nil, now: shared.clock.monotonic()) == nil
    else { return reply.succeed(.tooManyWaiting) }
    let publisher = Publisher(
      protocolName: "WebRTC",
      remoteAddress: isProxied ? host ?? PeerText.unknown : PeerText.place(of: client.address), host: host,
      gate: shared.gate, logger: shared.logger, credential: client.credential)
    makeRoom(for: .publishing, admitted: false)
    guard
      let session = WebRTCSession(stream, negotiation, publisher: publisher, peer: peer, hub: self, reply: reply)
    else {
      shared.connections.noLongerUnauthenticated(peer, failed: false, now: shared.clock.monotonic())
      shared.connections.leave(peer)
      return reply.succeed(.ended("DTLS cannot be used"))
    }
    add(session.transport, session)
    session.begin(key: key, software: PeerText.printable(client.software, limit: 80))
  }

  /// Takes the offer of a viewer.
  func watch(_ offer: String, _ watched: WatchedMedia, of client: WebRTCClient) -> WebRTCReply {
    let peer = place(of: client).peer
    guard mayWait(peer, .watching) else { return .tooManyWaiting }
    let negotiation: ViewerNegotiation
    do throws(OfferError) {
      negotiation = try ViewerNegotiation(try SessionOffer(offer), of: watched)
    } catch {
      return .notTaken(error)
    }
    guard negotiation.needs.isEmpty else { return .needs(negotiation.needs) }
    makeRoom(for: .watching)
    guard let relay = relays.relay(of: watched.stream) else { return .noRoom }
    guard !isClosing, let viewer = WebRTCViewer(negotiation, watched, relay, peer: peer, in: self), viewer.begin()
    else {
      if relay.isUnused { relays.drop(relay) }
      return .ended(isClosing ? "the server is shutting down" : "the stream has ended")
    }
    add(viewer.transport, viewer)
    return .answered(viewer.answer)
  }

  /// Ends all viewers, and takes no more.
  func endViewers() {
    isClosing = true
    relays.end("the server is shutting down")
  }

  /// The peer changes a session, under a condition on its tag.
  func change(
    _ id: String, of stream: StreamName, _ purpose: WebRTCTransport.Purpose, _ text: String, ifMatch tag: String
  ) -> WebRTCChange {
    guard let transport = session(id, of: stream, purpose)?.transport else { return over(id, stream, purpose) }
    let fragment: SessionOffer
    do throws(OfferError) { fragment = try SessionOffer(text, .fragment) } catch { return .malformed(error) }
    // A restart is asked for with `*` (RFC 9725 §4.3.3), candidates with the tag.
    guard tag == "*" || tag == transport.entityTag else { return .outdated }
    guard let answer = transport.receive(fragment) else { return .taken }
    return .restarted(answer, entityTag: transport.entityTag)
  }

  /// The peer ends a session.
  func end(_ id: String, of stream: StreamName, _ purpose: WebRTCTransport.Purpose) -> WebRTCChange {
    guard let session = session(id, of: stream, purpose) else { return over(id, stream, purpose) }
    session.owner.finish()
    return .taken
  }

  /// Why this side ended a session; nil if it did not, or long ago.
  func reason(of id: String, of stream: StreamName, _ purpose: WebRTCTransport.Purpose) -> String? {
    ended.reason(of: id, of: stream, purpose, now: clock.monotonic())
  }

  private func over(_ id: String, _ stream: StreamName, _ purpose: WebRTCTransport.Purpose) -> WebRTCChange {
    reason(of: id, of: stream, purpose).map { .over($0) } ?? .noSuchSession
  }

  private func session(_ id: String, of stream: StreamName, _ purpose: WebRTCTransport.Purpose) -> Entry? {
    sessions[id].flatMap { $0.transport.stream == stream && $0.transport.purpose == purpose ? $0 : nil }
  }

  // MARK: what sessions tell

  func connected(_ session: WebRTCTransport) {
    guard let index = unconnected.firstIndex(where: { $0 === session }) else { return }
    unconnected.remove(at: index)
    waiting[session.purpose]?.leave(session.peer)
  }

  func rename(_ session: WebRTCTransport, from fragment: String) {
    byFragment[fragment] = nil
    byFragment[session.agent.fragment] = session
  }

  /// Leads the datagrams of a place to a session. The place of another session's media stays where it is: one request
  /// with a forged address takes nothing over.
  func add(_ session: WebRTCTransport, at place: STUNResponse.Place) {
    if let other = byPlace[place], other !== session, other.hears(place) { return }
    byPlace[place] = session
  }

  func remove(_ session: WebRTCTransport, at place: STUNResponse.Place) {
    if byPlace[place] === session { byPlace[place] = nil }
  }

  func remove(_ session: WebRTCTransport, because reason: String?) {
    if let reason {
      ended.add(session.id, of: session.stream, session.purpose, because: reason, now: clock.monotonic())
    }
    connected(session)
    sessions[session.id] = nil
    byFragment[session.agent.fragment] = nil
    for path in session.paths { remove(session, at: path.place) }
  }

  // MARK: datagrams

  /// Takes a datagram. Returns the session that it is for; nil for none.
  func receive(_ datagram: ByteBuffer, on path: WebRTCPath) -> WebRTCTransport? {
    guard let first: UInt8 = datagram.getInteger(at: datagram.readerIndex),
      datagram.readableBytes <= WebRTCLimits.datagramBytes
    else { return nil }
    guard STUNMessage.isPossible(first) else {
      let session = byPlace[path.place]
      session?.receive(datagram, on: path)
      return session
    }
    guard let message = STUNMessage(datagram) else { return nil }
    if message.kind == .bindingSuccess {
      let session = byPlace[path.place]
      session?.receive(answer: message, on: path)
      return session
    }
    guard let name = ICEAgent.fragment(of: message.username),
      let session = byFragment[String(name)]
    else { return nil }
    session.receive(message, size: datagram.readableBytes, on: path)
    return session.paths.contains { $0.place == path.place } ? session : nil
  }

  func lose(_ path: WebRTCPath) {
    let session = byPlace[path.place]
    session?.lose(path)
    if let session { remove(session, at: path.place) }
  }

  // MARK: connections by TCP

  /// Whether another connection may come, which belongs to no session yet.
  func admitConnection(of peer: String) -> Bool { connections.admit(peer) }

  /// A connection is the only one of its session, or is closed.
  func releaseConnection(of peer: String) { connections.leave(peer) }
}
