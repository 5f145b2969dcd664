internal import COpenSSL

/// A publish key or token. Prints as `***`, so that it may be part of logged values. Compared in constant time: both
/// sides are hashed first, so that not even the length shows.
package struct Secret: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// SHA-256 of the text.
  package let digest: [UInt8]
  /// The text, for a token that must be read and for a callback; nil when only the digest is known. It goes nowhere else.
  package let text: String?
  /// Bytes of the text; nil when only the digest is known.
  package let length: Int?

  package init(_ text: some StringProtocol) {
    digest = Self.sha256(Array(text.utf8))
    self.text = String(text)
    length = text.utf8.count
  }

  /// From the hash of a text that is not known.
  package init(digest: [UInt8]) { (self.digest, text, length) = (digest, nil, nil) }

  /// A secret that was stored as the SHA-256 of its text, in hexadecimal; nil if it is none.
  package init?(hex: String) {
    let digits = hex.utf8.map { Character(UnicodeScalar($0)).hexDigitValue }
    guard digits.count == 2 * Int(SHA256_DIGEST_LENGTH) else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let high = digits[index], let low = digits[index + 1] else { return nil }
      bytes.append(UInt8(high << 4 | low))
    }
    (digest, text, length) = (bytes, nil, nil)
  }

  /// The SHA-256 of its text, in hexadecimal: what is stored in place of it.
  package var hex: String {
    digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// Equality in constant time.
  package static func == (a: Secret, b: Secret) -> Bool { a.matches(b) }
  package func hash(into hasher: inout Hasher) { hasher.combine(digest) }

  package func matches(_ other: Secret) -> Bool {
    digest.count == other.digest.count && CRYPTO_memcmp(digest, other.digest, digest.count) == 0
  }

  package var description: String { "***" }
  package var debugDescription: String { "***" }
  package var customMirror: Mirror { Mirror(self, children: []) }

  private static func sha256(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
    SHA256(bytes, bytes.count, &digest)
    return digest
  }
}
