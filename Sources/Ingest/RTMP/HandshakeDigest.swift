internal import COpenSSL

/// The signed handshake of Flash Player 9. The block contains an HMAC-SHA256 of itself. Four bytes of the block give
/// its offset within one of two areas ("schemes"). Adobe never published it. The constants are known from RTMP
/// implementations and are part of the protocol.
enum HandshakeDigest {
  static let digestSize = 32

  /// Position of the four bytes that give the digest's offset.
  enum Scheme: Int, CaseIterable {
    case first = 8
    case second = 772

    /// Offset of the digest: after the four bytes, by their sum modulo 728.
    func digestOffset(in block: [UInt8]) -> Int {
      block[rawValue..<rawValue + 4].reduce(0) { $0 + Int($1) } % 728 + rawValue + 4
    }
  }

  private static let tail: [UInt8] = [
    0xF0, 0xEE, 0xC2, 0x4A, 0x80, 0x68, 0xBE, 0xE8, 0x2E, 0x00, 0xD0, 0xD1, 0x02, 0x9E, 0x7E, 0x57,
    0x6E, 0xEC, 0x5D, 0x2D, 0x29, 0x80, 0x6F, 0xAB, 0x93, 0xB8, 0xE6, 0x36, 0xCF, 0xEB, 0x31, 0xAE,
  ]
  static let playerName = Array("Genuine Adobe Flash Player 001".utf8)
  static let serverName = Array("Genuine Adobe Flash Media Server 001".utf8)
  static let serverKey = serverName + tail

  /// The digest in a client's block of 1536 bytes. Nil if the block is not signed.
  static func find(in block: [UInt8]) -> (scheme: Scheme, digest: [UInt8])? {
    guard block.count == Handshake.blockSize, block[4..<8] != [0, 0, 0, 0] else { return nil }
    for scheme in Scheme.allCases {
      let offset = scheme.digestOffset(in: block)
      let digest = Array(block[offset..<offset + digestSize])
      if hmac(key: playerName, without(digestAt: offset, in: block)) == digest { return (scheme, digest) }
    }
    return nil
  }

  /// S1 with the server's digest, in the area that the client uses.
  static func signedS1(scheme: Scheme, random: (Int) -> [UInt8]) -> [UInt8] {
    // Time 0, and a version that makes clients expect a signature.
    var block: [UInt8] = [0, 0, 0, 0, 4, 5, 0, 1] + random(Handshake.blockSize - 8)
    let offset = scheme.digestOffset(in: block)
    let digest = hmac(key: serverName, without(digestAt: offset, in: block))
    block.replaceSubrange(offset..<offset + digestSize, with: digest)
    return block
  }

  /// S2: random bytes and their HMAC. Its key proves that the server has read the client's digest.
  static func signedS2(clientDigest: [UInt8], random: (Int) -> [UInt8]) -> [UInt8] {
    let body = random(Handshake.blockSize - digestSize)
    return body + hmac(key: hmac(key: serverKey, clientDigest), body)
  }

  static func without(digestAt offset: Int, in block: [UInt8]) -> [UInt8] {
    Array(block[..<offset] + block[(offset + digestSize)...])
  }

  static func hmac(key: [UInt8], _ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: digestSize)
    var length: UInt32 = 0
    HMAC(EVP_sha256(), key, Int32(key.count), bytes, bytes.count, &digest, &length)
    return digest
  }

  /// Cryptographically secure random bytes.
  static func randomBytes(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    RAND_bytes(&bytes, Int32(count))
    return bytes
  }
}
