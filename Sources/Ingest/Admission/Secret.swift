internal import COpenSSL

/// A publish key or token. Prints as `***`, so that it may be part of logged values. Compared in constant time: both
/// sides are hashed first, so that not even the length shows.
package struct Secret: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// SHA-256 of the text.
  package let digest: [UInt8]
  /// Bytes of the text.
  package let length: Int

  package init(_ text: some StringProtocol) {
    digest = Self.sha256(Array(text.utf8))
    length = text.utf8.count
  }

  /// From the hash of a text whose length is not known.
  init(digest: [UInt8]) {
    self.digest = digest
    length = 0
  }

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
