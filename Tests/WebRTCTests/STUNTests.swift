import Base
import NIOCore
import NIOEmbedded
import Testing
@testable import WebRTC

/// Requests of ICE, and the answers of a lite agent.
@Suite struct STUNTests {
  /// The request of RFC 5769 §2.1.
  static let sample: [UInt8] = [
    0x00, 0x01, 0x00, 0x58, 0x21, 0x12, 0xA4, 0x42, 0xB7, 0xE7, 0xA7, 0x01, 0xBC, 0x34, 0xD6, 0x86, 0xFA, 0x87, 0xDF,
    0xAE, 0x80, 0x22, 0x00, 0x10, 0x53, 0x54, 0x55, 0x4E, 0x20, 0x74, 0x65, 0x73, 0x74, 0x20, 0x63, 0x6C, 0x69, 0x65,
    0x6E, 0x74, 0x00, 0x24, 0x00, 0x04, 0x6E, 0x00, 0x01, 0xFF, 0x80, 0x29, 0x00, 0x08, 0x93, 0x2F, 0xF9, 0xB1, 0x51,
    0x26, 0x3B, 0x36, 0x00, 0x06, 0x00, 0x09, 0x65, 0x76, 0x74, 0x6A, 0x3A, 0x68, 0x36, 0x76, 0x59, 0x20, 0x20, 0x20,
    0x00, 0x08, 0x00, 0x14, 0x9A, 0xEA, 0xA7, 0x0C, 0xBF, 0xD8, 0xCB, 0x56, 0x78, 0x1E, 0xF2, 0xB5, 0xB2, 0xD3, 0xF2,
    0x49, 0xC1, 0xB5, 0x71, 0xA2, 0x80, 0x28, 0x00, 0x04, 0xE5, 0x7A, 0x3B, 0xCF,
  ]
  private static let password = "VOkJxbRl1RmTxUk/WvJxBt"

  /// A request as a publisher makes it.
  private static func request(of agent: ICEAgent, user: String? = nil, more: [UInt8] = []) -> [UInt8] {
    request(user: user ?? "\(agent.fragment):abcd", password: agent.password, more: more)
  }

  static func request(user: String, password: String, more: [UInt8] = []) -> [UInt8] {
    let name = Array(user.utf8)
    var body: [UInt8] = [0, 6, 0, UInt8(name.count)] + name + [UInt8](repeating: 0, count: (4 - name.count % 4) % 4)
    body += [0, 0x24, 0, 4, 1, 2, 3, 4] + more
    func head(_ length: Int) -> [UInt8] {
      [0, 1, UInt8(length >> 8), UInt8(length & 255), 0x21, 0x12, 0xA4, 0x42] + Array(1...12)
    }
    let digest = HMACSHA1.of(head(body.count + 24) + body, key: password)
    body += [0, 8, 0, 20] + digest
    return head(body.count) + body
  }

  private static let place = STUNResponse.Place(address: NetworkAddress(v4: [192, 0, 2, 1]), port: 32853)

  private func outcome(_ bytes: [UInt8], _ agent: ICEAgent) throws -> ICEAgent.Outcome {
    agent.receive(try #require(STUNMessage(ByteBuffer(bytes: bytes))), from: Self.place, size: bytes.count)
  }

  @Test func `A port of TCP is another place than the same one of UDP`() throws {
    let address = try SocketAddress(ipAddress: "192.0.2.1", port: 32853)
    let datagrams = try #require(WebRTCPath(address, isDatagram: true, EmbeddedChannel()))
    let stream = try #require(WebRTCPath(address, isDatagram: false, EmbeddedChannel()))
    #expect(datagrams.place == Self.place && stream.place != Self.place)
  }

  @Test func `The request of RFC 5769 is read and intact`() throws {
    let message = try #require(STUNMessage(ByteBuffer(bytes: Self.sample)))
    #expect(message.kind == .bindingRequest && message.username == "evtj:h6vY" && message.isControlled)
    #expect(message.isIntact(password: Self.password))
    #expect(!message.isIntact(password: Self.password + "x"))
  }

  @Test func `A response of RFC 5769 is made of its request`() throws {
    // §2.2 has an attribute in front (SOFTWARE); the mapped address is the same.
    let message = try #require(STUNMessage(ByteBuffer(bytes: Self.sample)))
    let response = STUNResponse.success(to: message, from: Self.place, password: Self.password)
    let bytes = Array(response.readableBytesView)
    #expect(Array(bytes[20..<32]) == [0, 0x20, 0, 8, 0, 1, 0xA1, 0x47, 0xE1, 0x12, 0xA6, 0x43])
    let read = try #require(STUNMessage(response))
    #expect(read.kind == .bindingSuccess && read.transaction == message.transaction)
    #expect(read.isIntact(password: Self.password))
  }

  @Test func `A check can be read by the peer that it is for`() throws {
    let transaction = [UInt8](1...12)
    let check = STUNResponse.check(transaction, username: "abcd:own", password: Self.password)
    let message = try #require(STUNMessage(check))
    #expect(message.kind == .bindingRequest && message.transaction == transaction && message.username == "abcd:own")
    #expect(message.isControlled && message.unknown.isEmpty)
    #expect(message.isIntact(password: Self.password) && !message.isIntact(password: "another"))
  }

  @Test func `A changed byte is noticed`() {
    for index in Self.sample.indices.dropLast(8) {
      var bytes = Self.sample
      bytes[index] ^= 0x10
      let message = STUNMessage(ByteBuffer(bytes: bytes))
      #expect(message?.isIntact(password: Self.password) != true, "\(index)")
    }
  }

  @Test func `Nothing shorter or longer is a message`() {
    for count in 0..<Self.sample.count {
      #expect(STUNMessage(ByteBuffer(bytes: Self.sample.prefix(count))) == nil, "\(count)")
    }
    #expect(STUNMessage(ByteBuffer(bytes: Self.sample + [0, 0, 0, 0])) == nil)
  }

  @Test func `Who knows the password is answered, and its nomination is heard`() throws {
    let agent = ICEAgent()
    guard case .authenticated(let response, nominates: false) = try outcome(Self.request(of: agent), agent) else {
      Issue.record("not answered")
      return
    }
    #expect(STUNMessage(response)?.isIntact(password: agent.password) == true)
    guard case .authenticated(_, nominates: true) = try outcome(Self.request(of: agent, more: [0, 0x25, 0, 0]), agent)
    else {
      Issue.record("not nominated")
      return
    }
  }

  @Test func `No answer is longer than its request`() throws {
    let agent = ICEAgent()
    let bytes = Self.request(of: agent)
    let place = STUNResponse.Place(
      address: NetworkAddress(v6: [UInt8](repeating: 0x20, count: 16)), port: 9)
    let message = try #require(STUNMessage(ByteBuffer(bytes: bytes)))
    guard case .authenticated(let response, _) = agent.receive(message, from: place, size: bytes.count) else {
      Issue.record("not answered")
      return
    }
    #expect(response.readableBytes <= bytes.count)
    #expect(agent.receive(message, from: place, size: 75) == .ignored)
  }

  @Test func `Strangers get no answer`() throws {
    let (agent, other) = (ICEAgent(), ICEAgent())
    #expect(try outcome(Self.request(of: other), agent) == .ignored)
    #expect(try outcome(Self.request(of: other, user: "\(agent.fragment):abcd"), agent) == .ignored)
    #expect(try outcome(Self.request(of: agent, user: agent.fragment), agent) == .ignored)
    var restarted = agent
    restarted.restart()
    #expect(try outcome(Self.request(of: agent), restarted) == .ignored)
  }

  @Test func `A peer that is controlled as well is told to change`() throws {
    let agent = ICEAgent()
    guard
      case .refused(let response) = try outcome(
        Self.request(of: agent, more: [0x80, 0x29, 0, 8] + [UInt8](repeating: 1, count: 8)), agent)
    else {
      Issue.record("not refused")
      return
    }
    #expect(Array(response.readableBytesView.dropFirst(24).prefix(4)) == [0, 0, 4, 87])
  }

  @Test func `What must be understood and is not is named`() throws {
    let agent = ICEAgent()
    guard case .refused(let response) = try outcome(Self.request(of: agent, more: [0x7F, 0xFF, 0, 0]), agent) else {
      Issue.record("not refused")
      return
    }
    #expect(Array(response.readableBytesView.dropFirst(24).prefix(4)) == [0, 0, 4, 20])
  }
}
