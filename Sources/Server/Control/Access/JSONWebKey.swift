internal import Crypto
internal import CryptoExtras
internal import Synchronization

/// A key that verifies tokens. It belongs to one algorithm, so no token can choose another one for it (RFC 8725 §3.1).
package final class JSONWebKey: Sendable {
  /// The algorithms of RFC 7518 §3.1 and RFC 8037 that weir takes.
  enum Algorithm: String, Sendable, Hashable, Decodable {
    case hs256 = "HS256"
    case rs256 = "RS256"
    case es256 = "ES256"
    case edDSA = "EdDSA"
  }

  private enum Material: Sendable {
    case secret(SymmetricKey)
    case rsa(_RSA.Signing.PublicKey)
    case p256(P256.Signing.PublicKey)
    case ed25519(Curve25519.Signing.PublicKey)
  }

  /// RFC 7518 §3.2: a secret has at least as many bits as the hash.
  package static let leastSecretBytes = 32

  /// `kid`; nil for a key that may stand behind any.
  let id: String?
  let algorithm: Algorithm
  private let material: Material
  private let withdrawn = Atomic(false)

  private init(id: String?, _ algorithm: Algorithm, _ material: Material) {
    (self.id, self.algorithm, self.material) = (id, algorithm, material)
  }

  /// Tokens that this key verified hold no longer.
  var isWithdrawn: Bool { withdrawn.load(ordering: .relaxed) }

  func withdraw() { withdrawn.store(true, ordering: .relaxed) }

  /// A shared secret for HS256.
  package convenience init(secret: some Collection<UInt8>) {
    self.init(id: nil, .hs256, .secret(SymmetricKey(data: Array(secret))))
  }

  /// A public key for RS256, ES256 or EdDSA, as text of RFC 7468 (`BEGIN PUBLIC KEY`). Nil for any other.
  convenience init?(pem: String) {
    if let key = try? P256.Signing.PublicKey(pemRepresentation: pem) {
      self.init(id: nil, .es256, .p256(key))
    } else if let key = try? Curve25519.Signing.PublicKey(pemRepresentation: pem) {
      self.init(id: nil, .edDSA, .ed25519(key))
    } else if let key = try? _RSA.Signing.PublicKey(pemRepresentation: pem) {
      self.init(id: nil, .rs256, .rsa(key))
    } else {
      return nil
    }
  }

  /// A public key of a key set. Nil for one that weir has no use for: of another type, curve or algorithm, or for encryption.
  convenience init?(_ entry: JSONWebKeySet.Entry) {
    guard entry.use ?? "sig" == "sig", entry.id?.utf8.count ?? 0 <= JSONWebKeySet.idBytes else { return nil }
    func bytes(_ text: String?) -> [UInt8]? { text.flatMap { Base64URL.decoded($0.utf8) } }
    let material: (Algorithm, Material)
    switch (entry.type, entry.curve) {
    case ("RSA", _):
      guard let n = bytes(entry.n), let e = bytes(entry.e), n.count <= 1024, e.count <= 8,
        let key = try? _RSA.Signing.PublicKey(n: n, e: e)
      else { return nil }
      material = (.rs256, .rsa(key))
    case ("EC", "P-256"):
      guard let x = bytes(entry.x), let y = bytes(entry.y), x.count == 32, y.count == 32,
        let key = try? P256.Signing.PublicKey(rawRepresentation: x + y)
      else { return nil }
      material = (.es256, .p256(key))
    case ("OKP", "Ed25519"):
      guard let x = bytes(entry.x), let key = try? Curve25519.Signing.PublicKey(rawRepresentation: x) else {
        return nil
      }
      material = (.edDSA, .ed25519(key))
    default: return nil
    }
    guard entry.algorithm ?? material.0.rawValue == material.0.rawValue else { return nil }
    self.init(id: entry.id, material.0, material.1)
  }

  /// Whether `signature` is this key's for `message`. The secret's is compared in constant time.
  func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
    switch material {
    case .secret(let key):
      HMAC<SHA256>.isValidAuthenticationCode(signature, authenticating: message, using: key)
    case .rsa(let key):
      key.isValidSignature(
        _RSA.Signing.RSASignature(rawRepresentation: signature), for: SHA256.hash(data: message),
        padding: .insecurePKCS1v1_5)
    case .p256(let key):
      (try? P256.Signing.ECDSASignature(rawRepresentation: signature)).map {
        key.isValidSignature($0, for: SHA256.hash(data: message))
      } ?? false
    case .ed25519(let key): key.isValidSignature(signature, for: message)
    }
  }

  /// Whether both are the same key under the same name.
  func equals(_ other: JSONWebKey) -> Bool {
    guard id == other.id else { return false }
    return switch (material, other.material) {
    case (.secret(let a), .secret(let b)): a == b
    case (.rsa(let a), .rsa(let b)): a.derRepresentation == b.derRepresentation
    case (.p256(let a), .p256(let b)): a.rawRepresentation == b.rawRepresentation
    case (.ed25519(let a), .ed25519(let b)): a.rawRepresentation == b.rawRepresentation
    default: false
    }
  }
}
