internal import Base
internal import FMP4

/// The claims that weir reads: those of RFC 7519 §4.1, and an object `weir` with what the bearer may do.
struct JSONWebTokenClaims: Decodable {
  /// One text, or a list of them.
  struct Texts: Decodable {
    let values: [String]

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let one = try? container.decode(String.self) {
        values = [one]
      } else {
        values = try container.decode([String].self)
      }
    }
  }

  /// Names and patterns of streams by action, and the scope of an administrator.
  struct Rights: Decodable {
    let watch: Texts?
    let publish: Texts?
    let record: Texts?
    let admin: String?
  }

  let sub: String?
  let iss: String?
  let aud: Texts?
  let exp: Double?
  let nbf: Double?
  let weir: Rights?

  /// The longest name for logs, in characters.
  private static let nameLength = 128

  /// What the claims allow by these rules.
  func grant(_ rules: JSONWebTokenRules, now: WallTime) throws(CredentialRefusal) -> AccessGrant {
    if let issuer = rules.issuer, iss != issuer { throw .malformed("its issuer (iss) is not the configured one") }
    // RFC 7519 §4.1.3: a token for others is refused even where no audience is configured.
    let audiences = aud?.values ?? []
    guard rules.audience.map({ audiences.contains($0) }) ?? audiences.isEmpty else {
      throw .malformed("it is for another audience (aud)")
    }
    guard exp != nil || !rules.needsExpiry else { throw .malformed("it has no expiry (exp)") }
    var grant = AccessGrant(name: Self.name(sub))
    grant.ends = try exp.map { second throws(CredentialRefusal) in try Self.time(second) &+ rules.clockSkew }
    grant.begins = try nbf.map { second throws(CredentialRefusal) in try Self.time(second) &- rules.clockSkew }
    if let ends = grant.ends, ends <= now { throw .expired }
    if let begins = grant.begins, now < begins { throw .notYet }
    for (action, texts) in [(AccessAction.watch, weir?.watch), (.publish, weir?.publish), (.record, weir?.record)] {
      if let texts { grant.streams[action] = try texts.values.map(Self.pattern) }
    }
    if let admin = weir?.admin {
      guard let scope = AdminScope(rawValue: admin) else {
        throw .malformed("its admin claim is not read, operate or admin")
      }
      grant.scope = scope
    }
    return grant
  }

  private static func name(_ subject: String?) -> String {
    let name = LogText.escaped(String((subject ?? "").prefix(nameLength)))
    return name.isEmpty ? "a token without a subject" : name
  }

  private static func pattern(_ text: String) throws(CredentialRefusal) -> StreamPattern {
    do throws(ValueError) {
      return try StreamPattern(parsing: text)
    } catch {
      throw .malformed("a stream in its claims is neither a name nor a pattern")
    }
  }

  /// A NumericDate (RFC 7519 §2), within the years that a time can have.
  private static func time(_ seconds: Double) throws(CredentialRefusal) -> WallTime {
    guard seconds.isFinite, (0...9_000_000_000).contains(seconds) else {
      throw .malformed("its times are no seconds since 1970")
    }
    return WallTime(nanoseconds: Int64(seconds * 1e9))
  }
}

/// What a token must state to be accepted.
package struct JSONWebTokenRules: Sendable, Hashable {
  /// `iss`; nil for any.
  package var issuer: String?
  /// One of `aud`; nil for tokens without one.
  package var audience: String?
  /// By how much the issuer's clock may differ, in nanoseconds.
  package var clockSkew: Int64 = 10_000_000_000
  package var needsExpiry = true

  package init() {}

  package static let mostSkew = Duration.seconds(30)
}
