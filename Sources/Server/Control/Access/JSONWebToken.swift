internal import FoundationEssentials

/// A JSON Web Token in its compact form (RFC 7519, RFC 7515 §7.1), whose signature is still to be verified.
struct JSONWebToken {
  /// The longest token, in bytes.
  static let bytes = 8 << 10

  /// RFC 7515 §4.1.
  private struct Header: Decodable {
    let alg: String
    let kid: String?
    /// What a reader must understand; weir knows nothing of that kind.
    let crit: [String]?
  }

  let algorithm: JSONWebKey.Algorithm
  /// The name of its key.
  let keyID: String?
  let signature: [UInt8]
  /// What was signed.
  let message: [UInt8]
  private let payload: ArraySlice<UInt8>

  /// Whether a text has the form of one: three parts with dots between them, of which the first begins like an object.
  static func isLike(_ text: String) -> Bool {
    text.utf8.starts(with: "eyJ".utf8) && text.utf8.count { $0 == UInt8(ascii: ".") } == 2
  }

  init(parsing text: String) throws(CredentialRefusal) {
    guard text.utf8.count <= Self.bytes else { throw .malformed("it is longer than \(Self.bytes) bytes") }
    let bytes = Array(text.utf8)
    let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let json = Base64URL.decoded(parts[0]), let signature = Base64URL.decoded(parts[2]),
      let header = try? JSONDecoder().decode(Header.self, from: Data(json))
    else { throw .malformed("it is no JSON Web Token") }
    guard let algorithm = JSONWebKey.Algorithm(rawValue: header.alg) else {
      throw .malformed("its algorithm is not HS256, RS256, ES256 or EdDSA")
    }
    guard header.crit == nil else { throw .malformed("it needs an extension that weir does not know (crit)") }
    self.algorithm = algorithm
    keyID = header.kid
    self.signature = signature
    message = Array(bytes[..<parts[1].endIndex])
    payload = parts[1]
  }

  /// The claims. To be read only once the signature is verified.
  func claims() throws(CredentialRefusal) -> JSONWebTokenClaims {
    guard let json = Base64URL.decoded(payload),
      let claims = try? JSONDecoder().decode(JSONWebTokenClaims.self, from: Data(json))
    else { throw .malformed("its claims cannot be read") }
    return claims
  }
}
