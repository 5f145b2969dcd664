internal import Base
internal import Logging
internal import NIOCore
internal import Publishing

/// Whom a transport carries the media of. Called on the listener's event loop.
protocol WebRTCTransportOwner: AnyObject {
  /// The keys are there.
  func secured()
  /// Whether packets of this sender are wanted; asked before they are decrypted.
  func takes(source: UInt32) -> Bool
  /// A packet of media, in clear.
  func receive(rtp clear: ByteBuffer, now: MonotonicTime)
  /// A packet of reports, in clear.
  func receive(rtcp clear: ByteBuffer, now: MonotonicTime)
  /// The connection is over, before or after it was secured.
  func failed(_ fault: WebRTCTransport.Fault)
  /// The peer wants to end (DELETE).
  func finish()
  /// The server ends it, and says why.
  func end(because reason: String)
}

/// Where a transport is found by its datagrams, and what all transports share.
protocol WebRTCDirectory: AnyObject {
  var identity: DTLSIdentity { get }
  var clock: SteadyClock { get }
  var logger: Logger { get }
  var loop: any EventLoop { get }
  /// Packets of the viewer that is served now.
  var batch: PacketBatch { get }
  /// Where peers reach this listener.
  var candidates: [ICECandidate] { get }
  /// It has other names since ICE began again.
  func rename(_ transport: WebRTCTransport, from fragment: String)
  /// Leads the datagrams of a place to it, and no longer.
  func add(_ transport: WebRTCTransport, at place: STUNResponse.Place)
  func remove(_ transport: WebRTCTransport, at place: STUNResponse.Place)
  /// The keys are there.
  func connected(_ transport: WebRTCTransport)
  /// It is over. `reason`: why this side ended it.
  func remove(_ transport: WebRTCTransport, because reason: String?)
}

/// The connection to one peer: ICE, DTLS and SRTP, over the paths by which it reaches this listener. Used on the listener's
/// event loop.
final class WebRTCTransport {
  enum Fault {
    /// The peer is gone.
    case lost(String)
    /// It broke the rules.
    case broken(String)
  }

  /// What its peer came for. A session is found by one who came for the same.
  enum Purpose { case publishing, watching }

  private struct Check {
    let transaction = (0..<12).map { _ in UInt8.random(in: .min ... .max) }
    /// Bytes that came from there minus those that were sent there. No more than comes is sent to an address.
    var credit = 0
    var isAnswered = false
  }

  let id = WebRTCTransport.newID()
  let stream: StreamName
  let purpose: Purpose
  /// The address that limits are counted by.
  let peer: String
  weak var owner: (any WebRTCTransportOwner)?
  /// Its peer may publish, or watch. Viewers are asked before it is made.
  var isAdmitted: Bool
  private let directory: any WebRTCDirectory
  private var offered: OfferedTransport
  private(set) var agent = ICEAgent()
  private let dtls: DTLSConnection
  private(set) var srtp: SRTPSession?
  /// The paths whose requests had the password, oldest first, and the one that is used.
  private(set) var paths: [WebRTCPath] = []
  private(set) var chosen: WebRTCPath?
  func holds(_ path: WebRTCPath) -> Bool { paths.contains(where: path.isSame) }
  /// Its connections by TCP.
  var connections: Int { paths.count { $0.address == nil } }
  /// The path of the handshake.
  private var handshakePath: WebRTCPath?
  /// Bytes that the handshake may send to addresses from which no cookie came back: as many as came for the session, the offer
  /// among them. A request with the password can carry somebody else's address.
  private var handshakeCredit: Int
  /// Bytes of reports that a publisher may get where its newest packet came from: as many as came from there.
  private var reportCredit = 0
  /// Where the newest packet came from that was made with the keys.
  private var heard: (place: STUNResponse.Place, at: MonotonicTime)?
  /// When the peer last showed that it still wants what is sent there (RFC 7675).
  private(set) var consentedAt: MonotonicTime
  private var isNominated = false
  /// Checks of addresses that may not be the viewer's own, and the one that it wants media at.
  private var checks: [STUNResponse.Place: Check] = [:]
  private var wanted: STUNResponse.Place?
  private var restarts = 0
  private var isOver = false

  init?(
    _ stream: StreamName, _ purpose: Purpose, _ offered: OfferedTransport, peer: String,
    in directory: any WebRTCDirectory
  ) {
    guard let dtls = DTLSConnection(directory.identity, offered.role) else { return nil }
    (self.stream, self.purpose, self.offered, self.peer, self.directory, self.dtls) =
      (stream, purpose, offered, peer, directory, dtls)
    isAdmitted = purpose == .watching
    handshakeCredit = offered.offerBytes
    consentedAt = directory.clock.monotonic()
  }

  private static func newID() -> String {
    (0..<2).map { _ in
      let digits = String(UInt64.random(in: .min ... .max), radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }

  private var now: MonotonicTime { directory.clock.monotonic() }

  /// Whether media may come and go.
  var isConnected: Bool { srtp != nil }

  /// Whether packets made with the keys come from a place.
  func hears(_ place: STUNResponse.Place) -> Bool {
    heard.map { $0.place == place && now &- $0.at < WebRTCLimits.placeHold } ?? false
  }

  /// Changes with each restart of ICE (RFC 9725 §4.3.1).
  var entityTag: String { "\"\(id.prefix(8))-\(restarts)\"" }

  /// A number for the `o=` line of an answer.
  var number: UInt64 { UInt64(id.prefix(16), radix: 16) ?? 1 }

  /// Takes a fragment of an offer. Candidates are passed over: a lite agent calls nobody. Returns the fragment of an answer if
  /// ICE begins again.
  func receive(_ fragment: SessionOffer) -> String? {
    guard let name = fragment.fragment, name != offered.fragment else { return nil }
    offered.fragment = name
    offered.password = fragment.password ?? offered.password
    restarts += 1
    let old = agent.fragment
    agent.restart()
    isNominated = false
    directory.rename(self, from: old)
    return SessionAnswer.fragment(agent, directory.candidates)
  }

  // MARK: datagrams

  /// A request that names this session.
  func receive(_ message: STUNMessage, size: Int, on path: WebRTCPath) {
    guard !isOver else { return }
    switch agent.receive(message, from: path.place, size: size) {
    case .ignored: break
    case .refused(let response): send(response, on: path)
    case .authenticated(let response, let nominates):
      send(response, on: path)
      handshakeCredit += size - response.readableBytes
      add(path)
      let isWanted = nominates || !isNominated
      if !mayCarry(path), purpose == .watching { check(path, isWanted, credit: size - response.readableBytes) }
      let isChosen = isWanted && mayCarry(path)
      if mayCarry(path) { consentedAt = now }
      if isChosen { (chosen, isNominated) = (path, isNominated || nominates) }
      if isChosen, offered.role == .client, dtls.state == .connecting, srtp == nil {
        advance(answering: path) { dtls.start() }
      }
    }
  }

  // MARK: where media may go

  /// Whether a request may lead media there. A request with the password can carry somebody else's address, and a stream that goes
  /// there is an attack. So by UDP a viewer gets media only at the address that returned the cookie or answered a check, and a
  /// publisher gets reports only where its media come from.
  private func mayCarry(_ path: WebRTCPath) -> Bool {
    guard srtp != nil, path.address != nil else { return true }
    return purpose == .watching
      && (path.place.address == dtls.validatedPlace?.address || checks[path.place]?.isAnswered == true)
  }

  /// Sends a check once enough bytes came from there.
  private func check(_ path: WebRTCPath, _ isWanted: Bool, credit: Int) {
    guard paths.contains(where: path.isSame) else { return }
    var check = checks[path.place] ?? Check()
    check.credit = min(check.credit + credit, WebRTCLimits.datagramBytes)
    if isWanted { wanted = path.place }
    let request = STUNResponse.check(
      check.transaction, username: "\(offered.fragment):\(agent.fragment)", password: offered.password)
    if check.credit >= request.readableBytes {
      check.credit -= request.readableBytes
      path.send(request)
    }
    checks[path.place] = check
  }

  /// An answer to a check.
  func receive(answer message: STUNMessage, on path: WebRTCPath) {
    guard !isOver, let check = checks[path.place], check.transaction == message.transaction,
      message.isIntact(password: offered.password)
    else { return }
    checks[path.place]?.isAnswered = true
    guard wanted == path.place else { return }
    (chosen, isNominated, consentedAt) = (path, true, now)
  }

  private func add(_ path: WebRTCPath) {
    // Also a known one: another session may have claimed its place.
    directory.add(self, at: path.place)
    guard !paths.contains(where: path.isSame) else { return }
    paths.append(path)
    let isFull = paths.count > WebRTCLimits.paths
    guard isFull || purpose == .watching && connections > WebRTCLimits.connectionsOfViewer,
      let index = paths.firstIndex(where: { !$0.isSame(as: chosen) && (isFull || $0.address == nil) })
    else { return }
    let oldest = paths.remove(at: index)
    checks[oldest.place] = nil
    directory.remove(self, at: oldest.place)
    if oldest.address == nil { oldest.channel.close(promise: nil) }
  }

  /// A path is closed.
  func lose(_ path: WebRTCPath) {
    paths.removeAll(where: path.isSame)
    checks[path.place] = nil
    if path.isSame(as: chosen) { chosen = paths.last(where: mayCarry) }
    if path.isSame(as: handshakePath) { handshakePath = nil }
  }

  /// Any other datagram from a validated address.
  func receive(_ datagram: ByteBuffer, on path: WebRTCPath) {
    guard !isOver, let first: UInt8 = datagram.getInteger(at: datagram.readerIndex),
      let second: UInt8 = datagram.getInteger(at: datagram.readerIndex + 1)
    else { return }
    switch first {
    case 20...63:
      handshakeCredit += datagram.readableBytes
      advance(answering: path) { dtls.receive(datagram, from: path.place) }
    case 128...191: receive(media: datagram, isControl: RTCPReader.isPossible(second), on: path)
    default: break
    }
  }

  private func receive(media datagram: ByteBuffer, isControl: Bool, on path: WebRTCPath) {
    guard let srtp, let owner else { return }
    let now = now
    if isControl {
      guard let clear = srtp.open(rtcp: datagram) else { return }
      hear(datagram, on: path, now)
      owner.receive(rtcp: clear, now: now)
    } else {
      guard let source = RTPPacket.source(of: datagram), owner.takes(source: source),
        let clear = srtp.open(rtp: datagram)
      else { return }
      hear(datagram, on: path, now)
      owner.receive(rtp: clear, now: now)
    }
  }

  private func hear(_ datagram: ByteBuffer, on path: WebRTCPath, _ now: MonotonicTime) {
    heard = (path.place, now)
    guard purpose == .publishing else { return }
    if !path.isSame(as: chosen) { (chosen, reportCredit) = (path, 0) }
    reportCredit = min(reportCredit + datagram.readableBytes, WebRTCLimits.reportCredit)
  }

  /// Encrypts a packet of reports and sends it. A publisher gets none before its first packet, and no more bytes than it sends.
  func send(rtcp clear: ByteBuffer) {
    guard let chosen, let closed = srtp?.close(rtcp: clear) else { return }
    if purpose == .publishing {
      guard reportCredit >= closed.readableBytes else { return }
      reportCredit -= closed.readableBytes
    }
    send(closed, on: chosen)
  }

  /// What a viewer's connection by TCP does not take now, as it is full of media, is lost like a datagram by UDP.
  private func send(_ datagram: ByteBuffer, on path: WebRTCPath) {
    if purpose == .publishing || path.isWritable { path.send(datagram) }
  }

  // MARK: the handshake

  /// Sends again what is due, while there are no keys.
  func tick() { if srtp == nil { advance { dtls.tick() } } }

  /// What answers a datagram goes where that came from. What is sent again goes to the same place. Where this side began the
  /// handshake, it goes to the place that the peer wants now.
  private func advance(answering path: WebRTCPath? = nil, _ body: () -> Void) {
    let before = dtls.state
    body()
    let datagrams = dtls.takeOutgoing()
    if let path, !datagrams.isEmpty { handshakePath = path }
    if let path = path ?? (offered.role == .client ? chosen : nil) ?? handshakePath ?? chosen {
      for datagram in datagrams where takesHandshake(datagram, path) { path.send(datagram) }
    }
    guard dtls.state != before, !isOver else { return }
    switch dtls.state {
    case .connecting: break
    case .connected: secure()
    case .closed: owner?.failed(.lost("the peer has closed its connection"))
    case .failed:
      owner?.failed(isConnected ? .lost("its DTLS connection failed") : .broken("its DTLS handshake failed"))
    }
  }

  /// Whether a datagram of the handshake may go there.
  private func takesHandshake(_ datagram: ByteBuffer, _ path: WebRTCPath) -> Bool {
    guard path.address != nil, path.place != dtls.validatedPlace else { return true }
    guard handshakeCredit >= datagram.readableBytes else { return false }
    handshakeCredit -= datagram.readableBytes
    return true
  }

  private func secure() {
    guard dtls.hasPeer(offered.fingerprint) else {
      owner?.failed(.broken("its certificate is not the one of its offer (a=fingerprint)"))
      return
    }
    guard let keys = dtls.keys else {
      owner?.failed(.broken("it takes neither AES-GCM nor AES-CM with SHA-1 for SRTP"))
      return
    }
    let isServer = offered.role == .server
    srtp = SRTPSession(
      profile: keys.profile, inbound: isServer ? keys.client : keys.server,
      outbound: isServer ? keys.server : keys.client, of: purpose)
    guard srtp != nil else {
      owner?.failed(.broken("the keys of SRTP cannot be used"))
      return
    }
    if purpose == .watching, chosen.map({ !mayCarry($0) }) == true {
      (chosen, isNominated) = (paths.last(where: mayCarry), false)
    }
    directory.connected(self)
    owner?.secured()
  }

  /// Ends the connection and tells the peer. `reason`: why this side does.
  func close(because reason: String? = nil) {
    guard !isOver else { return }
    isOver = true
    dtls.close()
    for datagram in dtls.takeOutgoing() { chosen?.send(datagram) }
    directory.remove(self, because: reason)
    for path in paths where path.address == nil { path.channel.close(promise: nil) }
    paths = []
    (chosen, handshakePath) = (nil, nil)
  }
}
