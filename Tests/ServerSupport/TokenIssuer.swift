package import Crypto
internal import CryptoExtras
package import FMP4
internal import Foundation
internal import Synchronization

/// Makes keys and tokens, good ones and others.
package struct TokenIssuer {
  package init() {}

  package static let secret = "0123456789abcdef0123456789abcdef"
  package let p256 = P256.Signing.PrivateKey()
  package let ed25519 = Curve25519.Signing.PrivateKey()

  package static func text(_ bytes: some Sequence<UInt8>) -> String {
    Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  package static func token(header: String, claims: String, _ sign: ([UInt8]) throws -> [UInt8]) rethrows -> String {
    let message = "\(text(header.utf8)).\(text(claims.utf8))"
    return "\(message).\(text(try sign(Array(message.utf8))))"
  }

  package static func hs256(
    _ claims: String, header: String = #"{"alg":"HS256","typ":"JWT"}"#, secret: [UInt8] = Array(secret.utf8)
  ) -> String {
    token(header: header, claims: claims) {
      Array(HMAC<SHA256>.authenticationCode(for: $0, using: SymmetricKey(data: secret)))
    }
  }

  package func es256(_ claims: String, header: String = #"{"alg":"ES256"}"#) throws -> String {
    try Self.token(header: header, claims: claims) { Array(try p256.signature(for: $0).rawRepresentation) }
  }

  package func edDSA(_ claims: String, header: String = #"{"alg":"EdDSA"}"#) throws -> String {
    try Self.token(header: header, claims: claims) { Array(try ed25519.signature(for: $0)) }
  }

  /// The two public keys as members of a set.
  package func entries(_ ids: (String, String) = ("p", "e")) -> [String] {
    let point = [UInt8](p256.publicKey.rawRepresentation)
    return [
      #"{"kty":"EC","crv":"P-256","kid":"\#(ids.0)","x":"\#(Self.text(point[..<32]))","y":"\#(Self.text(point[32...]))"}"#,
      #"{"kty":"OKP","crv":"Ed25519","kid":"\#(ids.1)","x":"\#(Self.text(ed25519.publicKey.rawRepresentation))"}"#,
    ]
  }

  package static func set(_ entries: [String]) -> [UInt8] {
    Array(#"{"keys":[\#(entries.joined(separator: ","))]}"#.utf8)
  }
}

/// Clocks that a test turns.
package final class TokenClock: Sendable {
  package init() {}

  package static let start: Int64 = 1_800_000_000
  private let seconds = Mutex(start)

  package func pass(_ more: Int64) { seconds.withLock { $0 += more } }

  package var wall: @Sendable () -> WallTime { { WallTime(nanoseconds: self.seconds.withLock { $0 } * 1_000_000_000) } }
}

/// `{"exp":…,"weir":{…}}`: good for an hour.
package func claims(_ rights: String = #""watch":"cam-*""#, _ more: String = "", expires: Int64 = 3600) -> String {
  #"{"sub":"ann","exp":\#(TokenClock.start + expires)\#(more),"weir":{\#(rights)}}"#
}
