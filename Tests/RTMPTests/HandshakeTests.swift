import Base
import NIOCore
@testable import RTMP
import Support
import Testing

@Suite("The handshake")
struct HandshakeTests {
  /// A client's block that is signed in one of the two areas.
  private func signedC1(_ scheme: HandshakeDigest.Scheme, seed: UInt64) -> [UInt8] {
    var random = SplitMix(state: seed)
    var block: [UInt8] = [0, 0, 0, 1, 9, 0, 124, 2] + (0..<1528).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    let offset = scheme.digestOffset(in: block)
    let digest = HandshakeDigest.hmac(
      key: HandshakeDigest.playerName, HandshakeDigest.without(digestAt: offset, in: block))
    block.replaceSubrange(offset..<offset + 32, with: digest)
    return block
  }

  private func answer(to bytes: [UInt8], piece: Int = .max) throws -> [UInt8] {
    var handshake = Handshake()
    var answer: [UInt8] = []
    var index = 0
    while index < bytes.count {
      let end = piece == .max ? bytes.count : min(index + piece, bytes.count)
      var buffer = ByteBuffer(bytes: bytes[index..<end])
      if case .answer(let bytes) = try handshake.receive(&buffer) { answer += bytes.readableBytesView }
      index = end
    }
    return answer
  }

  @Test func anUnsignedBlockIsEchoed() throws {
    for piece in [Int.max, 1, 700, 1536] {
      let answer = try answer(to: RTMPScript.c0c1, piece: piece)
      #expect(answer.count == 1 + 2 * 1536)
      #expect(answer.first == 3)
      #expect(Array(answer[5..<9]) == [0, 0, 0, 0])
      #expect(Array(answer[1537...]) == Array(RTMPScript.c0c1.dropFirst()))
    }
  }

  @Test(arguments: HandshakeDigest.Scheme.allCases)
  func aSignedBlockGetsSignedAnswers(_ scheme: HandshakeDigest.Scheme) throws {
    for seed in 0..<UInt64(50) {
      let c1 = signedC1(scheme, seed: seed)
      let found = try #require(HandshakeDigest.find(in: c1))
      #expect(found.scheme == scheme)
      let answer = try answer(to: [3] + c1)
      let s1 = Array(answer[1..<1537])
      let s2 = Array(answer[1537...])
      // What a client checks: S1 is signed with the server's name, in the client's area …
      let offset = scheme.digestOffset(in: s1)
      #expect(
        Array(s1[offset..<offset + 32])
          == HandshakeDigest.hmac(
            key: HandshakeDigest.serverName, HandshakeDigest.without(digestAt: offset, in: s1)))
      // … and S2 under a key made of the client's own digest.
      let key = HandshakeDigest.hmac(key: HandshakeDigest.serverKey, found.digest)
      #expect(Array(s2[1504...]) == HandshakeDigest.hmac(key: key, Array(s2[..<1504])))
      #expect(s1[4] >= 3)
    }
  }

  @Test func aSignatureThatDoesNotHoldIsTakenForNone() throws {
    var c1 = signedC1(.first, seed: 1)
    c1[1000] ^= 1
    #expect(HandshakeDigest.find(in: c1) == nil)
    #expect(Array(try answer(to: [3] + c1)[1537...]) == c1)
  }

  @Test func otherVersionsAreAnsweredWithThree() throws {
    #expect(try answer(to: [6] + RTMPScript.c0c1.dropFirst()).first == 3)
  }

  @Test func whatIsNotRTMPIsToldFromTheFirstByte() {
    #expect(throws: WireError.self) { try answer(to: Array("GET / HTTP/1.1\r\n".utf8)) }
    let error = #expect(throws: WireError.self) { try answer(to: [0x16, 3, 1]) }
    #expect(error?.reason.contains("TLS") == true)
  }

  @Test func whatFollowsTheHandshakeIsLeftAlone() throws {
    var handshake = Handshake()
    var buffer = ByteBuffer(bytes: RTMPScript.handshake + [0xAB, 0xCD])
    _ = try handshake.receive(&buffer)
    #expect(try handshake.receive(&buffer) == .done)
    #expect(Array(buffer.readableBytesView) == [0xAB, 0xCD])
  }
}
