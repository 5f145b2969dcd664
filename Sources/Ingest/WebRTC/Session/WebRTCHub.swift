internal import Logging
internal import NIOCore

/// The sessions of a listener, and which of them a datagram is for. Used on one event loop.
final class WebRTCHub {
  /// What all sessions share.
  struct Shared: Sendable {
    var gate: any PublishGate
    var clock: SteadyClock
    var logger: Logger
    var configuration: WebRTCConfiguration
    var connections: ConnectionRegistry
    var identity: DTLSIdentity
  }

  let shared: Shared
  let loop: any EventLoop
  /// Where publishers reach this listener.
  var candidates: [ICECandidate] = []
  private var sessions: [String: WebRTCSession] = [:]
  private var byFragment: [String: WebRTCSession] = [:]
  private var byPlace: [STUNResponse.Place: WebRTCSession] = [:]
  /// Sessions that are not connected, by the address that offered.
  private var unconnected: [String: Set<String>] = [:]
  private var unconnectedCount = 0
  /// Connections by TCP that belong to no session.
  private var unassigned: [String: Int] = [:]
  private var unassignedCount = 0

  init(_ shared: Shared, on loop: any EventLoop) { (self.shared, self.loop) = (shared, loop) }

  // MARK: offers

  /// Takes an offer. `reply` is completed once.
  func take(
    _ offer: String, for stream: StreamName, key: Secret?, of client: WebRTCClient,
    reply: EventLoopPromise<WebRTCReply>
  ) {
    let proxies = shared.configuration.proxies
    let isProxied = proxies.contains(NetworkAddress(client.address))
    let host = (isProxied ? client.client : NetworkAddress(client.address))?.hostText
    let peer = host ?? PeerText.unknown
    guard unconnected[peer, default: []].count < WebRTCLimits.unconnectedPerAddress,
      unconnectedCount < WebRTCLimits.unconnected
    else { return reply.succeed(.tooManyWaiting) }
    let negotiation: Negotiation
    do throws(OfferError) {
      negotiation = try Negotiation(try SessionOffer(offer))
    } catch {
      return reply.succeed(.notTaken(error))
    }
    guard
      shared.connections.arrive(peer, isProxy: isProxied && host == nil, now: shared.clock.monotonic()) == nil
    else { return reply.succeed(.tooManyWaiting) }
    let publisher = Publisher(
      protocolName: "WebRTC",
      remoteAddress: isProxied ? host ?? PeerText.unknown : PeerText.place(of: client.address), host: host,
      gate: shared.gate, logger: shared.logger)
    guard
      let session = WebRTCSession(stream, negotiation, publisher: publisher, peer: peer, hub: self, reply: reply)
    else {
      shared.connections.noLongerUnauthenticated(peer, failed: false, now: shared.clock.monotonic())
      shared.connections.leave(peer)
      return reply.succeed(.ended("DTLS cannot be used"))
    }
    sessions[session.id] = session
    byFragment[session.agent.fragment] = session
    unconnected[peer, default: []].insert(session.id)
    unconnectedCount += 1
    session.begin(key: key, software: PeerText.printable(client.software, limit: 80))
  }

  /// The publisher changes a session, under a condition on its tag.
  func change(_ id: String, of stream: StreamName, _ text: String, ifMatch tag: String) -> WebRTCChange {
    guard let session = session(id, of: stream) else { return .noSuchSession }
    let fragment: SessionOffer
    do throws(OfferError) { fragment = try SessionOffer(text, .fragment) } catch { return .malformed(error) }
    // A restart is asked for with `*` (RFC 9725 §4.3.3), candidates with the tag.
    guard tag == "*" || tag == session.entityTag else { return .outdated }
    guard let answer = session.receive(fragment) else { return .taken }
    return .restarted(answer, entityTag: session.entityTag)
  }

  /// The publisher ends a session. False if there is none.
  func end(_ id: String, of stream: StreamName) -> Bool {
    guard let session = session(id, of: stream) else { return false }
    session.finish()
    return true
  }

  private func session(_ id: String, of stream: StreamName) -> WebRTCSession? {
    sessions[id].flatMap { $0.stream == stream ? $0 : nil }
  }

  // MARK: what sessions tell

  func connected(_ session: WebRTCSession) {
    guard unconnected[session.peer]?.remove(session.id) != nil else { return }
    unconnectedCount -= 1
    if unconnected[session.peer]?.isEmpty == true { unconnected[session.peer] = nil }
  }

  func rename(_ session: WebRTCSession, from fragment: String) {
    byFragment[fragment] = nil
    byFragment[session.agent.fragment] = session
  }

  /// Leads the datagrams of a place to a session. The place of another session's media stays where it is: one request
  /// with a forged address takes nothing over.
  func add(_ session: WebRTCSession, at place: STUNResponse.Place) {
    if let other = byPlace[place], other !== session, other.hears(place) { return }
    byPlace[place] = session
  }

  func remove(_ session: WebRTCSession, at place: STUNResponse.Place) {
    if byPlace[place] === session { byPlace[place] = nil }
  }

  func remove(_ session: WebRTCSession) {
    connected(session)
    sessions[session.id] = nil
    byFragment[session.agent.fragment] = nil
    for path in session.paths { remove(session, at: path.place) }
  }

  // MARK: datagrams

  /// Takes a datagram. Returns the session that it is for; nil for none.
  func receive(_ datagram: ByteBuffer, on path: WebRTCPath) -> WebRTCSession? {
    guard let first: UInt8 = datagram.getInteger(at: datagram.readerIndex),
      datagram.readableBytes <= WebRTCLimits.datagramBytes
    else { return nil }
    guard STUNMessage.isPossible(first) else {
      let session = byPlace[path.place]
      session?.receive(datagram, on: path)
      return session
    }
    guard let message = STUNMessage(datagram), let name = ICEAgent.fragment(of: message.username),
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

  /// Whether another connection may come that belongs to no session yet.
  func admitStranger(_ peer: String) -> Bool {
    guard unassignedCount < WebRTCLimits.unassigned, unassigned[peer, default: 0] < WebRTCLimits.unassignedPerAddress
    else {
      return false
    }
    unassigned[peer, default: 0] += 1
    unassignedCount += 1
    return true
  }

  func dropStranger(_ peer: String) {
    guard let count = unassigned[peer] else { return }
    unassigned[peer] = count > 1 ? count - 1 : nil
    unassignedCount -= 1
  }
}
