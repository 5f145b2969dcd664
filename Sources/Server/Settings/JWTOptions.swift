internal import Base
internal import Control

/// The keys of JSON Web Tokens, and what tokens must state.
struct JWTOptions: TitledSettings {
  static let title = "Tokens"

  let secret = Setting(
    "jwt-secret", at: "access.jwt.secret", SettingText("secret", JSONWebKey.parseSecret), isSecret: true,
    "Secret that tokens are signed with (HS256), 32 bytes or more.")
  let keys = Setting(
    each: "jwt-key", at: "access.jwt.keys", .file, "PEM file with public keys of tokens (RS256, ES256, EdDSA).")
  let keySet = Setting(
    "jwt-key-set", at: "access.jwt.keySet", SettingText("file|url", JSONWebTokenSettings.KeySet.parse),
    "JSON Web Key Set with public keys of tokens: a file, or an https address.")
  let staleness = Setting(
    "jwt-key-set-staleness", at: "access.jwt.staleness", .duration(.seconds(60) ... .seconds(30 * 86_400)),
    default: "24h", "How long keys of an address are used while it cannot be reached.")
  let issuer = Setting(
    "jwt-issuer", at: "access.jwt.issuer", SettingText("text") { $0 }, "What tokens must have as iss.")
  let audience = Setting(
    "jwt-audience", at: "access.jwt.audience", SettingText("text") { $0 },
    "What tokens must have in aud; without it, tokens with aud are refused.")
  let clockSkew = Setting(
    "jwt-clock-skew", at: "access.jwt.clockSkew", .duration(.zero...JSONWebTokenRules.mostSkew), default: "10s",
    "By how much the issuer's clock may differ.")
  let withoutExpiry = Setting(
    switch: "jwt-without-expiry", at: "access.jwt.withoutExpiry", "Accept tokens without exp, which hold for ever.")

  func settings(_ given: SettingSources) throws(ConfigurationError) -> JSONWebTokenSettings {
    var settings = JSONWebTokenSettings()
    settings.secret = try given[secret]
    settings.keyFiles = try given[keys]
    settings.keySet = try given[keySet]
    settings.times.staleness = try given[staleness]
    settings.rules.issuer = try given[issuer]
    settings.rules.audience = try given[audience]
    settings.rules.clockSkew = try given[clockSkew].wholeMilliseconds &* 1_000_000
    settings.rules.needsExpiry = try !given[withoutExpiry]
    return settings
  }
}

extension JSONWebKey {
  fileprivate static func parseSecret(_ text: String) throws(ValueError) -> JSONWebKey {
    guard text.utf8.count >= leastSecretBytes else {
      throw ValueError(
        "the secret is shorter than \(leastSecretBytes) bytes", advice: "openssl rand -base64 32 makes a good one")
    }
    return JSONWebKey(secret: text.utf8)
  }
}

extension JSONWebTokenSettings.KeySet {
  fileprivate static func parse(_ text: String) throws(ValueError) -> Self {
    if let address = try JSONWebKeySetAddress(parsing: text) { return .address(address) }
    guard !text.isEmpty else { throw ValueError("the file's name is empty", advice: "name a file or an https address") }
    return .file(text)
  }
}
