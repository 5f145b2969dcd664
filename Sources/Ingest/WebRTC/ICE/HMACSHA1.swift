internal import COpenSSL

/// The message integrity of STUN (RFC 8489 §14.5).
enum HMACSHA1 {
  static let size = 20

  static func of(_ bytes: [UInt8], key: String) -> [UInt8] {
    let key = Array(key.utf8)
    var digest = [UInt8](repeating: 0, count: size)
    var length: UInt32 = 0
    guard HMAC(EVP_sha1(), key, CInt(key.count), bytes, bytes.count, &digest, &length) != nil else { return [] }
    return digest
  }

  /// Compares in constant time.
  static func matches(_ bytes: [UInt8], key: String, _ digest: [UInt8]) -> Bool {
    let expected = of(bytes, key: key)
    return expected.count == size && digest.count == size && CRYPTO_memcmp(expected, digest, size) == 0
  }

  /// A text of so many random characters, 6 bits each, from the characters that ICE allows (RFC 8839 §5.4).
  static func randomText(_ count: Int) -> String {
    var bytes = [UInt8](repeating: 0, count: count)
    var generator = SystemRandomNumberGenerator()
    for index in bytes.indices { bytes[index] = UInt8.random(in: 0..<64, using: &generator) }
    return String(decoding: bytes.map { alphabet[Int($0)] }, as: UTF8.self)
  }

  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
}
