import Base
import FMP4
import NIOCore
import NIOPosix
import Publishing
import Support
import Synchronization
import Testing
@testable import WebRTC

/// Which session a datagram is for, and how many ways a session may have. Requests come from made-up ports of loopback.
@Suite(.timeLimit(.minutes(1))) struct WebRTCHubTests {
  /// A hub on a loop, and the UDP socket that its answers go out by.
  private final class Setup {
    let hub: WebRTCHub
    let channel: any Channel

    init(_ hub: WebRTCHub, _ channel: any Channel) { (self.hub, self.channel) = (hub, channel) }

    func path(_ port: Int) throws -> WebRTCPath {
      try #require(WebRTCPath(try SocketAddress(ipAddress: "127.0.0.1", port: port), isDatagram: true, channel))
    }

    /// Whether a datagram from a port is for no session.
    func isForNobody(_ datagram: ByteBuffer, from port: Int) throws -> Bool {
      hub.receive(datagram, on: try path(port)) == nil
    }

    /// The session that a request from a port is for.
    func check(_ session: Credentials, from port: Int) throws -> WebRTCTransport? {
      let request = STUNTests.request(user: "\(session.name):abcd", password: session.password)
      return hub.receive(ByteBuffer(bytes: request), on: try path(port))
    }
  }

  private struct Credentials {
    var name: String
    var password: String
  }

  private struct NoAnswer: Error {}

  /// Runs `body` on the hub's loop, with so many sessions of publishers.
  private func withHub(
    sessions count: Int, _ body: @escaping @Sendable (Setup, [Credentials]) throws -> Void
  ) async throws {
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let channel = try await DatagramBootstrap(group: loop).bind(host: "127.0.0.1", port: 0).get()
    let identity = try #require(DTLSIdentity())
    let setup = try await loop.submit {
      let hub = WebRTCHub(
        WebRTCHub.Shared(
          gate: RecordingGate(), clock: .system(), logger: .silent, configuration: WebRTCConfiguration(),
          connections: ConnectionRegistry(limits: PeerLimits()), identity: identity), on: loop)
      return NIOLoopBound(Setup(hub, channel), eventLoop: loop)
    }.get()
    var sessions: [Credentials] = []
    for number in 0..<count {
      let name = try #require(StreamName("cam\(number)"))
      let promise = loop.makePromise(of: WebRTCReply.self)
      loop.execute {
        setup.value.hub.take(
          OfferTests.offer(OfferTests.audio, OfferTests.video), for: name, key: nil,
          of: WebRTCClient(address: nil, client: nil, software: ""), reply: promise)
      }
      guard case .answered(let answer) = try await promise.futureResult.get() else { throw NoAnswer() }
      let lines = answer.description.split(separator: "\r\n")
      func value(_ name: String) -> String {
        lines.first { $0.hasPrefix("a=\(name):") }.map { String($0.dropFirst(name.count + 3)) } ?? ""
      }
      sessions.append(Credentials(name: value("ice-ufrag"), password: value("ice-pwd")))
    }
    let made = sessions
    try await loop.submit { try body(setup.value, made) }.get()
    try await loop.submit { for end in setup.value.hub.shared.connections.closeForGood() { end(.shutdown) } }.get()
    try await channel.close()
  }

  @Test func `A request leads to the session that it names, and later datagrams follow it`() async throws {
    try await withHub(sessions: 2) { setup, sessions in
      let one = try #require(try setup.check(sessions[0], from: 4001))
      let other = try #require(try setup.check(sessions[1], from: 4002))
      #expect(try one !== other && one.holds(setup.path(4001)) && !one.holds(setup.path(4002)))
      let media = ByteBuffer(bytes: [UInt8](repeating: 0x80, count: 40))
      #expect(setup.hub.receive(media, on: try setup.path(4001)) === one)
      #expect(setup.hub.receive(media, on: try setup.path(4002)) === other)
      #expect(try setup.isForNobody(media, from: 4003))
    }
  }

  @Test func `Who does not know the password leads nothing to itself`() async throws {
    try await withHub(sessions: 1) { setup, sessions in
      var wrong = sessions[0]
      wrong.password += "x"
      var unknown = try setup.check(wrong, from: 4001)
      #expect(unknown == nil)
      #expect(try setup.isForNobody(ByteBuffer(bytes: [0x80, 1]), from: 4001))
      wrong = sessions[0]
      wrong.name = "nobody"
      unknown = try setup.check(wrong, from: 4001)
      #expect(unknown == nil)
    }
  }

  @Test func `A datagram is no longer than may be`() async throws {
    try await withHub(sessions: 1) { setup, sessions in
      let session = try #require(try setup.check(sessions[0], from: 4001))
      func media(_ count: Int) -> ByteBuffer { ByteBuffer(repeating: 0x80, count: count) }
      #expect(setup.hub.receive(media(WebRTCLimits.datagramBytes), on: try setup.path(4001)) === session)
      #expect(try setup.isForNobody(media(WebRTCLimits.datagramBytes + 1), from: 4001))
      #expect(try setup.isForNobody(ByteBuffer(), from: 4001))
    }
  }

  @Test func `A session remembers so many addresses, and forgets the oldest that it does not use`() async throws {
    try await withHub(sessions: 1) { setup, sessions in
      for number in 0..<WebRTCLimits.paths { _ = try setup.check(sessions[0], from: 4000 + number) }
      let session = try #require(try setup.check(sessions[0], from: 4000))
      #expect(session.paths.count == WebRTCLimits.paths && session.chosen?.place.port == 4000)
      _ = try setup.check(sessions[0], from: 4900)
      #expect(session.paths.count == WebRTCLimits.paths)
      #expect(session.holds(try setup.path(4000)), "the one that was used last stays")
      #expect(try !session.holds(setup.path(4001)) && session.holds(setup.path(4900)))
      #expect(try setup.isForNobody(ByteBuffer(bytes: [0x80, 1]), from: 4001))
    }
  }

  @Test func `An address can go over to another session, whose password it knows`() async throws {
    try await withHub(sessions: 2) { setup, sessions in
      _ = try setup.check(sessions[0], from: 4001)
      let other = try #require(try setup.check(sessions[1], from: 4001))
      #expect(setup.hub.receive(ByteBuffer(bytes: [0x80, 1]), on: try setup.path(4001)) === other)
    }
  }

  @Test func `A path that is lost leads nowhere`() async throws {
    try await withHub(sessions: 1) { setup, sessions in
      let session = try #require(try setup.check(sessions[0], from: 4001))
      setup.hub.lose(try setup.path(4001))
      #expect(session.paths.isEmpty && session.chosen == nil)
      #expect(try setup.isForNobody(ByteBuffer(bytes: [0x80, 1]), from: 4001))
    }
  }

  @Test func `Connections of an address are bounded, and given back`() async throws {
    try await withHub(sessions: 0) { setup, _ in
      for number in 0..<WebRTCLimits.connectionsPerAddress {
        #expect(setup.hub.admitConnection(of: "10.0.0.1"), "\(number)")
      }
      #expect(!setup.hub.admitConnection(of: "10.0.0.1") && setup.hub.admitConnection(of: "10.0.0.2"))
      setup.hub.releaseConnection(of: "10.0.0.1")
      #expect(setup.hub.admitConnection(of: "10.0.0.1"))
    }
  }
}
