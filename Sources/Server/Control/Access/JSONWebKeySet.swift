internal import Base
internal import FoundationEssentials

/// A set of public keys (RFC 7517 §5), and the bounds of one.
enum JSONWebKeySet {
  /// The longest text of a set, in bytes.
  static let bytes = 64 << 10
  /// The most keys of a set; further ones are left out.
  static let keys = 64
  /// The longest name of a key, in bytes.
  static let idBytes = 256

  /// A key of a set. All members are text, and others are not read.
  struct Entry: Decodable {
    var type: String
    var id: String?
    var use: String?
    var algorithm: String?
    var curve: String?
    var x: String?
    var y: String?
    var n: String?
    var e: String?

    enum CodingKeys: String, CodingKey {
      case type = "kty"
      case id = "kid"
      case use
      case algorithm = "alg"
      case curve = "crv"
      case x, y, n, e
    }
  }

  /// One that cannot be read does not keep the others from being used.
  private struct Lenient: Decodable {
    let entry: Entry?

    init(from decoder: any Decoder) throws { entry = try? Entry(from: decoder) }
  }

  private struct Document: Decodable {
    let keys: [Lenient]
  }

  /// The keys of a set that weir can use. Shared secrets are no part of a set that others publish, and are left out.
  static func keys(in text: [UInt8]) throws(ValueError) -> [JSONWebKey] {
    guard text.count <= bytes else {
      throw ValueError("it has more than \(bytes) bytes", advice: "name a set of public keys (RFC 7517)")
    }
    guard let document = try? JSONDecoder().decode(Document.self, from: Data(text)) else {
      throw ValueError("it is no JSON Web Key Set", advice: #"name one: {"keys": [...]} (RFC 7517)"#)
    }
    let found = document.keys.prefix(keys).compactMap { $0.entry.flatMap { JSONWebKey($0) } }
    guard !found.isEmpty else {
      throw ValueError(
        "it has no key that weir can use", advice: "weir takes RSA of 2048 bits or more, P-256 and Ed25519")
    }
    return found
  }

  /// The public keys of a PEM file, one behind the other.
  static func keys(inPEM text: String) throws(ValueError) -> [JSONWebKey] {
    let end = "-----END PUBLIC KEY-----"
    var found: [JSONWebKey] = []
    for part in text.split(separator: end).prefix(keys) {
      guard let begin = part.firstRange(of: "-----BEGIN PUBLIC KEY-----") else { continue }
      guard let key = JSONWebKey(pem: part[begin.lowerBound...] + end) else {
        throw ValueError(
          "it has a public key that weir cannot use", advice: "weir takes RSA of 2048 bits or more, P-256 and Ed25519")
      }
      found.append(key)
    }
    guard !found.isEmpty else {
      throw ValueError(
        "it has no public key", advice: "name a PEM file: -----BEGIN PUBLIC KEY----- (openssl pkey -pubout makes one)")
    }
    return found
  }
}
