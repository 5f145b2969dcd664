import Base
import FMP4
import Glibc
import NIOCore
import NIOPosix
import Publishing
import Support
import Synchronization
import Testing
@testable import WebRTC

/// A listener on loopback: offers, checks of ICE by UDP and TCP, changes and ends of sessions.
@Suite(.timeLimit(.minutes(1))) struct WebRTCListenerTests {
  private let stream: StreamName
  private let client = WebRTCClient(
    address: try? SocketAddress(ipAddress: "192.0.2.7", port: 9), client: nil, software: "test 1")

  init() throws { stream = try #require(StreamName("cam")) }

  private struct Running {
    let listener: WebRTCListener
    let address: SocketAddress
  }

  private func listening(
    _ gate: RecordingGate = RecordingGate(), _ configuration: WebRTCConfiguration = WebRTCConfiguration(),
    _ body: (Running) async throws -> Void
  ) async throws {
    let listener = WebRTCListener(
      gate: gate, clock: .system(), logger: LogCollector().logger, group: MultiThreadedEventLoopGroup.singleton,
      configuration: configuration)
    let place = ListenEndpoint.address(try SocketAddress(ipAddress: "127.0.0.1", port: 0))
    let address = try await listener.start(place, tls: nil)
    do { try await body(Running(listener: listener, address: address)) } catch {
      await listener.stop()
      throw error
    }
    await listener.stop()
  }

  private static let offer = OfferTests.offer(OfferTests.audio, OfferTests.video)

  private func answer(_ running: Running, key: String? = nil) async throws -> WebRTCAnswer {
    let reply = try await running.listener.offer(Self.offer, for: stream, key: key.map { Secret($0) }, of: client).get()
    guard case .answered(let answer) = reply else { throw Unexpected(what: "\(reply)") }
    return answer
  }

  private struct Unexpected: Error {
    let what: String
  }

  /// The value of a line of an answer.
  private func value(_ name: String, _ answer: String) throws -> String {
    let line = try #require(answer.split(separator: "\r\n").first { $0.hasPrefix("a=\(name):") })
    return String(line.dropFirst(name.count + 3))
  }

  // MARK: offers

  @Test func `An offer is answered with the address that is listened at, by UDP and TCP`() async throws {
    let gate = RecordingGate()
    try await listening(gate) { running in
      let answer = try await answer(running)
      let port = try #require(running.address.port)
      #expect(answer.description.contains(" udp 2130706431 127.0.0.1 \(port) typ host"))
      #expect(answer.description.contains("127.0.0.1 \(port) typ host tcptype passive"))
      #expect(answer.session.count == 32 && answer.entityTag.hasPrefix("\"") && answer.omissions.isEmpty)
    }
    let request = try #require(gate.sinks.first?.request)
    #expect(request.protocolName == "WebRTC" && request.host == "192.0.2.7" && request.origin == .peer)
    #expect(gate.sinks.first?.ending != nil, "the end of the listener ends its publications")
  }

  @Test func `Addresses that are configured are told in place of it`() async throws {
    var configuration = WebRTCConfiguration()
    configuration.publicAddresses = [
      .init(host: "198.51.100.1", port: 4000), .init(host: "stream.example.org", port: nil),
    ]
    try await listening(RecordingGate(), configuration) { running in
      let answer = try await answer(running).description
      let port = try #require(running.address.port)
      #expect(answer.contains("198.51.100.1 4000 typ host") && answer.contains("stream.example.org \(port) typ host"))
      #expect(!answer.contains("127.0.0.1"))
    }
  }

  @Test func `Who is refused by the gate, and offers that cannot be taken, get their reasons`() async throws {
    try await listening(RecordingGate(key: "right")) { running in
      let wrong = try await running.listener.offer(Self.offer, for: stream, key: Secret("wrong"), of: client).get()
      guard case .refused(.unauthorized) = wrong else { throw Unexpected(what: "\(wrong)") }
      let malformed = try await running.listener.offer("hello", for: stream, key: nil, of: client).get()
      guard case .notTaken(let error) = malformed, error.code == .malformed else {
        throw Unexpected(what: "\(malformed)")
      }
      _ = try await answer(running, key: "right")
    }
  }

  @Test func `Sessions of an address that do not connect are bounded`() async throws {
    try await listening { running in
      for number in 0..<WebRTCLimits.unconnectedPerAddress {
        let name = try #require(StreamName("cam\(number)"))
        let reply = try await running.listener.offer(Self.offer, for: name, key: nil, of: client).get()
        guard case .answered = reply else { throw Unexpected(what: "\(number): \(reply)") }
      }
      let more = try await running.listener.offer(Self.offer, for: stream, key: nil, of: client).get()
      guard case .tooManyWaiting = more else { throw Unexpected(what: "\(more)") }
      // Another address has places of its own.
      let other = WebRTCClient(address: try SocketAddress(ipAddress: "192.0.2.8", port: 9), client: nil, software: "")
      let reply = try await running.listener.offer(Self.offer, for: stream, key: nil, of: other).get()
      guard case .answered = reply else { throw Unexpected(what: "\(reply)") }
    }
  }

  @Test func `Where all places are taken, the oldest session of the address with most gives way`() async throws {
    let gate = RecordingGate()
    var configuration = WebRTCConfiguration()
    configuration.waitingPublishers = 4
    try await listening(gate, configuration) { running in
      for (number, host) in [9, 7, 7, 8, 9].enumerated() {
        let client = WebRTCClient(
          address: try SocketAddress(ipAddress: "192.0.2.\(host)", port: 9), client: nil, software: "")
        let name = try #require(StreamName("cam\(number)"))
        let reply = try await running.listener.offer(Self.offer, for: name, key: nil, of: client).get()
        guard case .answered = reply else { throw Unexpected(what: "\(number): \(reply)") }
      }
      // The first one is older, but of an address that had one alone.
      let ended = gate.sinks.map { $0.ending?.text.contains("others needed its place") == true }
      #expect(ended == [false, true, false, false, false])
      #expect(gate.sinks.allSatisfy { $0.request.connection == .awaited })
    }
  }

  @Test func `An offer with a wrong key takes the place of nobody whose key was right`() async throws {
    let gate = RecordingGate(key: "right")
    var configuration = WebRTCConfiguration()
    configuration.waitingPublishers = 2
    try await listening(gate, configuration) { running in
      for (number, key) in ["right", "right", "wrong", "wrong", "wrong", "right"].enumerated() {
        let name = try #require(StreamName("cam\(number)"))
        let reply = try await running.listener.offer(Self.offer, for: name, key: Secret(key), of: client).get()
        switch reply {
        case .answered where key == "right": break
        case .refused(.unauthorized) where key == "wrong": #expect(gate.sinks.allSatisfy { $0.ending == nil })
        default: throw Unexpected(what: "\(number): \(reply)")
        }
      }
      #expect(gate.sinks.map { $0.ending != nil } == [true, false, false], "one whose key is right takes the oldest's")
    }
  }

  // MARK: changes (RFC 9725 §4.3)

  private func change(
    _ running: Running, _ session: String, _ text: String, ifMatch tag: String, _ name: StreamName? = nil,
    _ side: WebRTCListener.Side = .publisher
  ) async throws -> String {
    switch try await running.listener.change(session, of: name ?? stream, side, text, ifMatch: tag).get() {
    case .noSuchSession: "none"
    case .over(let reason): "over: \(reason)"
    case .outdated: "outdated"
    case .malformed: "malformed"
    case .taken: "taken"
    case .restarted(let answer, let tag): "restarted \(tag)\r\n\(answer)"
    }
  }

  @Test func `A change needs the session, and its newest tag`() async throws {
    try await listening { running in
      let answer = try await answer(running)
      let candidates = "a=ice-ufrag:abcd\r\na=ice-pwd:0123456789abcdefghijklmn\r\nm=audio 9 X 0\r\na=mid:0\r\n"
      let (session, tag) = (answer.session, answer.entityTag)
      #expect(try await change(running, session, candidates, ifMatch: tag) == "taken")
      #expect(try await change(running, session, candidates, ifMatch: "\"old\"") == "outdated")
      #expect(try await change(running, "0000", candidates, ifMatch: tag) == "none")
      #expect(try await change(running, session, candidates, ifMatch: tag, StreamName("other")) == "none")
      #expect(try await change(running, session, candidates, ifMatch: tag, nil, .viewer) == "none")
      #expect(try await change(running, session, "m=video\r\n", ifMatch: tag) == "malformed")
    }
  }

  @Test func `ICE begins again with other credentials, and the tag changes`() async throws {
    try await listening { running in
      let answer = try await answer(running)
      let again = "a=ice-ufrag:wxyz\r\na=ice-pwd:zyxwvutsrqponmlkjihgfe\r\n"
      let said = try await change(running, answer.session, again, ifMatch: "*")
      #expect(said.hasPrefix("restarted ") && !said.contains(answer.entityTag))
      #expect(try await change(running, answer.session, again, ifMatch: answer.entityTag) == "outdated")
      let (old, new) = (try value("ice-ufrag", answer.description), try value("ice-ufrag", said))
      #expect(old != new)
      let socket = try UDPClient(to: running.address)
      defer { socket.close() }
      let oldPassword = try value("ice-pwd", answer.description)
      socket.send(STUNTests.request(user: "\(old):abcd", password: oldPassword))
      #expect(try await socket.receive(milliseconds: 200) == nil, "the former agent is gone")
      socket.send(STUNTests.request(user: "\(new):wxyz", password: try value("ice-pwd", said)))
      #expect(try await socket.receive() != nil)
    }
  }

  @Test func `A session ends once, for the one that it is of`() async throws {
    let gate = RecordingGate()
    try await listening(gate) { running in
      let session = try await answer(running).session
      #expect(try await end(running, session, .viewer) == "none")
      #expect(try await end(running, "0000") == "none")
      #expect(try await end(running, session) == "taken")
      #expect(try await end(running, session) == "none")
      #expect(gate.sinks.first?.ending == .finished)
    }
  }

  @Test func `Why the server ended a session can be asked for`() async throws {
    let gate = RecordingGate()
    try await listening(gate) { running in
      let session = try await answer(running)
      try #require(gate.sinks.first).request.onEviction(.replaced)
      var said = "taken"
      for _ in 0..<200 where !said.hasPrefix("over") {
        try await Task.sleep(for: .milliseconds(10))
        said = try await change(running, session.session, "", ifMatch: session.entityTag)
      }
      #expect(said.hasPrefix("over: ") && said.count > 10, "\(said)")
      #expect(try await end(running, session.session) == said)
    }
  }

  private func end(
    _ running: Running, _ session: String, _ side: WebRTCListener.Side = .publisher
  ) async throws -> String {
    switch try await running.listener.end(session, of: stream, side).get() {
    case .over(let reason): "over: \(reason)"
    case .taken: "taken"
    default: "none"
    }
  }

  // MARK: checks

  /// A socket that sends datagrams, and waits for one.
  private struct UDPClient {
    let descriptor: Int32

    init(to address: SocketAddress) throws {
      descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
      let code = address.withSockAddr { Glibc.connect(descriptor, $0, socklen_t($1)) }
      try #require(descriptor >= 0 && code == 0)
    }

    func send(_ bytes: [UInt8]) { _ = Glibc.send(descriptor, bytes, bytes.count, 0) }

    func receive(milliseconds: Int = 5000) async throws -> ByteBuffer? {
      var bytes = [UInt8](repeating: 0, count: 2048)
      for _ in 0...milliseconds / 5 {
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        if count > 0 { return ByteBuffer(bytes: bytes.prefix(count)) }
        try await Task.sleep(for: .milliseconds(5))
      }
      return nil
    }

    func close() { Glibc.close(descriptor) }
  }

  @Test func `A check by UDP is answered if it has name and password`() async throws {
    try await listening { running in
      let answer = try await answer(running).description
      let (name, password) = (try value("ice-ufrag", answer), try value("ice-pwd", answer))
      let socket = try UDPClient(to: running.address)
      defer { socket.close() }
      // Rubbish, a wrong password and an unknown name get nothing.
      socket.send([1, 2, 3])
      socket.send([UInt8](repeating: 0x80, count: 40))
      socket.send(STUNTests.request(user: "\(name):abcd", password: password + "x"))
      socket.send(STUNTests.request(user: "\(name)x:abcd", password: password))
      let request = STUNTests.request(user: "\(name):abcd", password: password)
      socket.send(request)
      let response = try #require(try await socket.receive().flatMap { STUNMessage($0) })
      #expect(response.kind == .bindingSuccess && response.transaction == Array(1...12))
      #expect(response.isIntact(password: password))
      #expect(try await socket.receive(milliseconds: 100) == nil, "one answer to five datagrams")
    }
  }

  // MARK: addresses that have not proved themselves

  private func publish(_ running: Running, _ offer: String) async throws -> (name: String, password: String) {
    let reply = try await running.listener.offer(offer, for: stream, key: nil, of: client).get()
    guard case .answered(let answer) = reply else { throw Unexpected(what: "\(reply)") }
    return (try value("ice-ufrag", answer.description), try value("ice-pwd", answer.description))
  }

  @Test func `A handshake that the server begins sends no more than came for its session`() async throws {
    try await listening { running in
      let offer = OfferTests.offer(OfferTests.section("audio", "0", "a=mid:0"), bundle: "0")
        .replacing("actpass", with: "passive")
      let (name, password) = try await publish(running, offer)
      let socket = try UDPClient(to: running.address)
      defer { socket.close() }
      let request = STUNTests.request(user: "\(name):abcd", password: password)
      socket.send(request)
      var (hellos, bytes) = (0, 0)
      let end = ContinuousClock.now + .seconds(9)
      while ContinuousClock.now < end {
        guard let datagram = try await socket.receive(milliseconds: 200) else { continue }
        if datagram.getInteger(at: 0, as: UInt8.self) == 22 { hellos += 1 }
        bytes += datagram.readableBytes
      }
      #expect(hellos >= 2, "one that is lost comes again")
      #expect(bytes <= offer.utf8.count + request.count, "\(hellos) beginnings, \(bytes) bytes for \(offer.utf8.count)")
    }
  }

  /// One that knows the password can name somebody else's address. And no more goes to an address than came from it.
  @Test func `Reports go where a publisher's media come from, whatever its requests name`() async throws {
    try await listening { running in
      let identity = try #require(DTLSIdentity())
      let old = "sha-256 " + [String](repeating: "AB", count: 32).joined(separator: ":")
      let (name, password) = try await publish(
        running,
        Self.offer.replacing(old, with: identity.fingerprint.text).replacing("actpass", with: "active"))
      let (own, other) = (try UDPClient(to: running.address), try UDPClient(to: running.address))
      defer {
        own.close()
        other.close()
      }
      let nominating = STUNTests.request(user: "\(name):abcd", password: password, more: [0, 0x25, 0, 0])
      own.send(nominating)
      _ = try #require(try await own.receive())
      let dtls = try #require(DTLSConnection(identity, .client))
      let place = STUNResponse.Place(address: NetworkAddress(v4: [127, 0, 0, 1]), port: 1)
      dtls.start()
      for _ in 0..<40 where dtls.state == .connecting {
        for datagram in dtls.takeOutgoing() { own.send(Array(datagram.readableBytesView)) }
        if let datagram = try await own.receive(milliseconds: 500) { dtls.receive(datagram, from: place) }
      }
      for datagram in dtls.takeOutgoing() { own.send(Array(datagram.readableBytesView)) }
      let keys = try #require(dtls.keys)
      let srtp = try #require(SRTPSession(profile: keys.profile, inbound: keys.server, outbound: keys.client))
      func send(_ sequence: UInt16, from socket: UDPClient) throws {
        let packet = RTPPackets.bytes(
          sequence, source: 77, extensions: [0x31, 0, UInt8(truncatingIfNeeded: sequence)],
          [UInt8](repeating: 1, count: 600))
        let closed = srtp.close(rtp: packet.readableBytes) { $0.copyBytes(from: packet.readableBytesView) }
        socket.send(Array(try #require(closed).readableBytesView))
      }
      func reports(to socket: UDPClient) async throws -> Int {
        var count = 0
        while let datagram = try await socket.receive(milliseconds: 200), count < 5 {
          if datagram.getInteger(at: 1, as: UInt8.self).map(RTCPReader.isPossible) == true { count += 1 }
        }
        return count
      }
      try send(1, from: own)
      #expect(try await reports(to: own) > 0)
      other.send(nominating)
      try send(2, from: own)
      #expect(try await reports(to: own) > 0)
      #expect(try await reports(to: other) == 0)
      try send(3, from: other)
      var (count, bytes) = (0, 0)
      while let datagram = try await other.receive(milliseconds: 1500), count < 200 {
        (count, bytes) = (count + 1, bytes + datagram.readableBytes)
      }
      #expect(count > 0 && bytes <= 700, "\(count) datagrams, \(bytes) bytes")
    }
  }

  // MARK: TCP (RFC 4571, RFC 6544)

  /// Collects what comes, and whether the connection is closed.
  private final class Collector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let state: Received
    init(_ state: Received) { self.state = state }
    func channelRead(context: ChannelHandlerContext, data: NIOAny) { state.add(unwrapInboundIn(data)) }
    func channelInactive(context: ChannelHandlerContext) { state.close() }
  }

  private final class Received: Sendable {
    private let state = Mutex((bytes: [UInt8](), isClosed: false))
    var bytes: [UInt8] { state.withLock { $0.bytes } }
    var isClosed: Bool { state.withLock { $0.isClosed } }
    func add(_ buffer: ByteBuffer) { state.withLock { $0.bytes += Array(buffer.readableBytesView) } }
    func close() { state.withLock { $0.isClosed = true } }

    func until(_ condition: (Received) -> Bool) async throws -> Bool {
      for _ in 0..<500 where !condition(self) { try await Task.sleep(for: .milliseconds(10)) }
      return condition(self)
    }
  }

  private func connect(to address: SocketAddress) async throws -> (channel: any Channel, received: Received) {
    let received = Received()
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Collector(received))
        }
      }.connect(to: address).get()
    return (channel, received)
  }

  private func framed(_ bytes: [UInt8]) -> ByteBuffer {
    ByteBuffer(bytes: [UInt8(bytes.count >> 8), UInt8(bytes.count & 255)] + bytes)
  }

  @Test func `A check by TCP is answered, in pieces of any size`() async throws {
    try await listening { running in
      let answer = try await answer(running).description
      let (name, password) = (try value("ice-ufrag", answer), try value("ice-pwd", answer))
      let (channel, received) = try await connect(to: running.address)
      let request = STUNTests.request(user: "\(name):abcd", password: password)
      for byte in framed(request).readableBytesView {
        try await channel.writeAndFlush(ByteBuffer(bytes: [byte])).get()
      }
      #expect(try await received.until { $0.bytes.count > 2 })
      let bytes = received.bytes
      #expect(Int(bytes[0]) << 8 | Int(bytes[1]) == bytes.count - 2)
      let response = try #require(STUNMessage(ByteBuffer(bytes: bytes.dropFirst(2))))
      #expect(response.kind == .bindingSuccess && response.isIntact(password: password))
      // It belongs to the session now: what is not understood is passed over.
      try await channel.writeAndFlush(framed([9, 9, 9])).get()
      try await channel.writeAndFlush(framed(request)).get()
      #expect(try await received.until { $0.bytes.count == 2 * bytes.count } && !received.isClosed)
      try await channel.close()
    }
  }

  @Test func `A connection that names no session, or exceeds a datagram, is closed`() async throws {
    try await listening { running in
      let answer = try await answer(running).description
      let name = try value("ice-ufrag", answer)
      let large = [UInt8](repeating: 0, count: WebRTCLimits.datagramBytes + 1)
      for bytes in [
        framed([1, 2, 3]), framed(STUNTests.request(user: "\(name):abcd", password: "wrong")), framed([]),
        framed(large),
      ] {
        let (channel, received) = try await connect(to: running.address)
        try? await channel.writeAndFlush(bytes).get()
        #expect(try await received.until(\.isClosed), "\(bytes.readableBytes)")
        #expect(received.bytes.isEmpty)
      }
    }
  }

  // MARK: the machine

  @Test func `Addresses of the machine are those that another one can use`() throws {
    let four = MachineNetwork.addresses(of: try SocketAddress(ipAddress: "0.0.0.0", port: 0))
    let both = MachineNetwork.addresses(of: try SocketAddress(ipAddress: "::", port: 0))
    #expect(!four.isEmpty && Set(four).isSubset(of: both.filter { !$0.contains(":") } + ["127.0.0.1"]))
    for text in both {
      #expect(NetworkAddress(parsing: text) != nil && !text.lowercased().hasPrefix("fe80") && !text.contains("%"))
    }
    func isLoopback(_ text: String) -> Bool { text.hasPrefix("127.") || text == "::1" }
    // The loopback is told where there is nothing else.
    for all in [four, both] { #expect(all.allSatisfy(isLoopback) || !all.contains(where: isLoopback)) }
  }
}
