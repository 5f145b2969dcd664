package import Base
internal import Crypto

/// The key of a webhook's signature (Standard Webhooks 1.0.0). It has no description, so no log can show it.
package struct WebhookSecret: Sendable {
  static let prefix = "whsec_"
  /// Bytes of a key.
  static let lengths = 24...64

  private let key: SymmetricKey

  /// Reads `whsec_` and base64.
  package init(parsing text: String) throws(ValueError) {
    let advice = "write whsec_ and 24 to 64 random bytes in base64: echo whsec_$(openssl rand -base64 32)"
    guard text.hasPrefix(Self.prefix), let bytes = Base64.decode(text.dropFirst(Self.prefix.utf8.count)),
      Self.lengths.contains(bytes.count)
    else { throw ValueError("that is no secret of Standard Webhooks", advice: advice) }
    key = SymmetricKey(data: bytes)
  }

  /// `v1,` and the signature of a message.
  ///
  /// - Parameter seconds: the time of this attempt, since 1970.
  func signature(id: String, seconds: Int64, body: String) -> String {
    let code = HMAC<SHA256>.authenticationCode(for: Array("\(id).\(seconds).\(body)".utf8), using: key)
    return "v1,\(Base64.encode(code))"
  }
}
