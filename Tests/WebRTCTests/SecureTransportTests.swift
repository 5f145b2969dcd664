import Base
import NIOCore
import Testing
@testable import WebRTC

/// DTLS between two ends of weir's own, and SRTP with the keys of it.
@Suite struct SecureTransportTests {
  private static let place = STUNResponse.Place(address: NetworkAddress(v4: [192, 0, 2, 1]), port: 9)

  /// Passes datagrams on until nothing comes any more.
  private static func connect(_ client: DTLSConnection, _ server: DTLSConnection, reversed: Bool = false) {
    client.start()
    for _ in 0..<20 {
      var sent = client.takeOutgoing()
      for datagram in reversed ? sent.reversed() : sent { server.receive(datagram, from: place) }
      sent = server.takeOutgoing()
      if sent.isEmpty { break }
      for datagram in reversed ? sent.reversed() : sent { client.receive(datagram, from: place) }
    }
  }

  private static func pair() throws -> (DTLSIdentity, DTLSConnection, DTLSIdentity, DTLSConnection) {
    let (one, other) = (try #require(DTLSIdentity()), try #require(DTLSIdentity()))
    return (one, try #require(DTLSConnection(one, .client)), other, try #require(DTLSConnection(other, .server)))
  }

  @Test(arguments: [false, true]) func `Both ends get the same keys, also of datagrams in reverse`(reversed: Bool)
    throws
  {
    let (one, client, other, server) = try Self.pair()
    Self.connect(client, server, reversed: reversed)
    #expect(client.state == .connected && server.state == .connected)
    #expect(server.hasPeer(one.fingerprint) && client.hasPeer(other.fingerprint))
    #expect(!server.hasPeer(other.fingerprint))
    let (mine, theirs) = (try #require(client.keys), try #require(server.keys))
    #expect(mine.client == theirs.client && mine.server == theirs.server && mine.client != mine.server)
    #expect(mine.profile == SRTPSession.gcm && mine.client.count == 28)
  }

  @Test func `Before a cookie came back nothing longer than what came is sent`() throws {
    let (_, client, _, server) = try Self.pair()
    client.start()
    let hello = try #require(client.takeOutgoing().first)
    server.receive(hello, from: Self.place)
    let answer = server.takeOutgoing()
    #expect(answer.count == 1 && answer[0].readableBytes <= hello.readableBytes)
    #expect(server.validatedPlace == nil)
  }

  /// A peer may take another path between its two hellos. `WebRTCTransport` sends no more to an address that is not validated than
  /// came for the session.
  @Test func `A cookie of another address goes on with the handshake, and validates none`() throws {
    let (one, client, _, server) = try Self.pair()
    let other = STUNResponse.Place(address: Self.place.address, port: 10)
    client.start()
    for datagram in client.takeOutgoing() { server.receive(datagram, from: Self.place) }
    for _ in 0..<20 {
      for datagram in server.takeOutgoing() { client.receive(datagram, from: Self.place) }
      for datagram in client.takeOutgoing() { server.receive(datagram, from: other) }
    }
    #expect(client.state == .connected && server.state == .connected && server.hasPeer(one.fingerprint))
    #expect(server.validatedPlace == nil)
  }

  @Test func `A cookie that was not given ends the handshake`() throws {
    let (_, client, identity, first) = try Self.pair()
    let second = try #require(DTLSConnection(identity, .server))
    let elsewhere = STUNResponse.Place(address: Self.place.address, port: 10)
    client.start()
    for datagram in client.takeOutgoing() {
      first.receive(datagram, from: Self.place)
      second.receive(datagram, from: elsewhere)
    }
    for datagram in first.takeOutgoing() { client.receive(datagram, from: Self.place) }
    for datagram in client.takeOutgoing() { second.receive(datagram, from: elsewhere) }
    #expect(second.state == .failed)
  }

  @Test func `Rubbish neither connects nor traps`() throws {
    let (_, client, _, server) = try Self.pair()
    client.start()
    let hello = Array(try #require(client.takeOutgoing().first).readableBytesView)
    for count in hello.indices { server.receive(ByteBuffer(bytes: hello.prefix(count)), from: Self.place) }
    for index in hello.indices {
      var bytes = hello
      bytes[index] ^= 0xFF
      server.receive(ByteBuffer(bytes: bytes), from: Self.place)
    }
    #expect(server.state != .connected)
  }

  @Test func `The end is told`() throws {
    let (_, client, _, server) = try Self.pair()
    Self.connect(client, server)
    client.close()
    for datagram in client.takeOutgoing() { server.receive(datagram, from: Self.place) }
    #expect(server.state == .closed)
  }

  @Test(arguments: [(SRTPSession.sha1, 30), (SRTPSession.gcm, 28)])
  func `What one end encrypts the other opens, once`(profile: UInt, count: Int) throws {
    try #require(SRTPSession.isAvailable)
    let (a, b) = ([UInt8](repeating: 1, count: count), [UInt8](repeating: 2, count: count))
    let one = try #require(SRTPSession(profile: profile, inbound: a, outbound: b))
    let other = try #require(SRTPSession(profile: profile, inbound: b, outbound: a))
    let report = RTCPWriter().bytes
    let closed = try #require(one.close(rtcp: report))
    #expect(closed != report && other.open(rtcp: closed) == report)
    #expect(other.open(rtcp: closed) == nil)
    var changed = try #require(one.close(rtcp: report))
    changed.setInteger(UInt8(9), at: changed.writerIndex - 1)
    #expect(other.open(rtcp: changed) == nil)
    #expect(other.open(rtp: RTPPackets.bytes(1)) == nil)
    for size in 0..<12 { #expect(other.open(rtp: ByteBuffer(repeating: 0x80, count: size)) == nil) }
  }

  @Test(arguments: [(SRTPSession.sha1, 30), (SRTPSession.gcm, 28)])
  func `Empty and late packets around a wrap of the numbers are opened, each once`(profile: UInt, count: Int) throws {
    try #require(SRTPSession.isAvailable)
    let (a, b) = ([UInt8](repeating: 1, count: count), [UInt8](repeating: 2, count: count))
    let one = try #require(SRTPSession(profile: profile, inbound: a, outbound: b))
    let other = try #require(SRTPSession(profile: profile, inbound: b, outbound: a))
    var packets: [(clear: ByteBuffer, closed: ByteBuffer)] = []
    for number in 65_533...65_539 {
      let (high, low) = (UInt8(number >> 8 & 255), UInt8(number & 255))
      let clear = [0x80, 0x60, high, low, 0, 0, 0, 1, 0, 0, 0, 2] + [UInt8](repeating: 7, count: 33 * (number % 3))
      let closed = try #require(one.close(rtp: clear.count) { $0.copyBytes(from: clear) })
      packets.append((ByteBuffer(bytes: clear), closed))
    }
    #expect(packets.contains { $0.clear.readableBytes == 12 }, "one is empty")
    for index in [0, 3, 2, 1, 6, 4, 5] { #expect(other.open(rtp: packets[index].closed) == packets[index].clear) }
    for (_, closed) in packets { #expect(other.open(rtp: closed) == nil) }
    let report = RTCPWriter().bytes
    let reports = try (0..<3).map { _ in try #require(one.close(rtcp: report)) }
    #expect(Set(reports).count == 3)
    for index in [1, 0, 2] { #expect(other.open(rtcp: reports[index]) == report) }
  }

  /// By a second session with the same keys: libsrtp makes no packet that far behind its newest one.
  @Test(arguments: [1500, 20_000, 32_000])
  func `Packets of a publisher pass behind one with a number far ahead, each once`(_ step: Int) throws {
    try #require(SRTPSession.isAvailable)
    let (a, b) = ([UInt8](repeating: 1, count: 28), [UInt8](repeating: 2, count: 28))
    let sender = try #require(SRTPSession(profile: SRTPSession.gcm, inbound: a, outbound: b))
    let stray = try #require(SRTPSession(profile: SRTPSession.gcm, inbound: a, outbound: b))
    let server = try #require(SRTPSession(profile: SRTPSession.gcm, inbound: b, outbound: a, of: .publishing))
    func packet(_ number: Int, by session: SRTPSession) throws -> ByteBuffer {
      let clear = RTPPackets.bytes(UInt16(number))
      return try #require(session.close(rtp: clear.readableBytes) { $0.copyBytes(from: clear.readableBytesView) })
    }
    var passed = 0
    for number in 100..<300 {
      if number == 150 { #expect(server.open(rtp: try packet(number + step, by: stray)) != nil) }
      let closed = try packet(number, by: sender)
      if server.open(rtp: closed) != nil { passed += 1 }
      #expect(server.open(rtp: closed) == nil, "a replay")
    }
    #expect(passed == 200)
  }

  /// A profile, the size of its key with the salt, and what libsrtp's own ciphers (NSS) made of the packets below.
  struct Known: Sendable {
    let profile: UInt
    let count: Int
    let media: String
    let report: String
  }

  private static let known = [
    Known(
      profile: SRTPSession.sha1, count: 30,
      media: "426782c2141d777b8bde751f8a6487c105322e6ebbd1f4ca7aa32779cd97", report: "800000018fa186db4f66819c0c43"),
    Known(
      profile: SRTPSession.gcm, count: 28,
      media: "5eb66633138a3b1f65137027034d25e263f37b2f7605130667cc2b0f5e633b328641848f",
      report: "e9e8b0dc74e923f7750faa72b249318280000001"),
  ]

  @Test(arguments: known) func `OpenSSL's ciphers make what those of libsrtp make`(known: Known) throws {
    try #require(SRTPSession.isAvailable)
    #expect(SRTPSession.usesOpenSSL)
    let key = (0..<known.count).map { UInt8($0) }
    let session = try #require(SRTPSession(profile: known.profile, inbound: key, outbound: key))
    let header: [UInt8] = [0x80, 0x60, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2]
    let packet = header + Array(0..<20)
    let closed = try #require(session.close(rtp: packet.count) { $0.copyBytes(from: packet) })
    #expect(Self.hex(Array(closed.readableBytesView)) == Self.hex(header) + known.media)
    let empty: [UInt8] = [0x80, 0xC9, 0, 1, 0, 0, 0, 2]
    let closedReport = try #require(session.close(rtcp: ByteBuffer(bytes: empty)))
    #expect(Self.hex(Array(closedReport.readableBytesView)) == Self.hex(empty) + known.report)
    for place in 0..<closed.readableBytes {
      var forged = closed
      forged.setInteger((closed.getInteger(at: place, as: UInt8.self) ?? 0) ^ 1, at: place)
      #expect(session.open(rtp: forged) == nil, "\(place)")
    }
    #expect(session.open(rtp: closed) == ByteBuffer(bytes: packet))
  }

  private static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  @Test func `Keys are kept of a bounded number of senders`() throws {
    try #require(SRTPSession.isAvailable)
    let (a, b) = ([UInt8](repeating: 1, count: 28), [UInt8](repeating: 2, count: 28))
    let one = try #require(SRTPSession(profile: SRTPSession.gcm, inbound: a, outbound: b))
    let other = try #require(SRTPSession(profile: SRTPSession.gcm, inbound: b, outbound: a))
    func opens(_ source: Int) throws -> Bool {
      // An empty report.
      let report = ByteBuffer(bytes: [0x80, 201, 0, 1, 0, 0, 0, UInt8(source)])
      return other.open(rtcp: try #require(one.close(rtcp: report))) == report
    }
    for source in 1...WebRTCLimits.securedSources { #expect(try opens(source), "\(source)") }
    #expect(try !opens(WebRTCLimits.securedSources + 1))
    #expect(try opens(1))
  }
}
