internal import Ingest

/// Keys that may watch and are no JSON Web Tokens: those that the server knows itself.
protocol ViewerCredentials: Sendable {
  /// What a key allows; nil for an unknown one. Compares in constant time.
  func credential(of key: String) -> ViewerCredential?
}

/// What a known key allows.
struct ViewerCredential: Sendable {
  var grant: AccessGrant
  /// Whether the key is still known with this grant. Called often, from any thread.
  var stands: @Sendable () -> Bool
}

/// The admin token: it may watch all streams.
struct AdminTokenCredentials: ViewerCredentials {
  /// Nil without one.
  let token: Secret?

  func credential(of key: String) -> ViewerCredential? {
    guard let token, Secret(key).matches(token) else { return nil }
    return ViewerCredential(
      grant: AccessGrant(name: "the admin token", streams: [.watch: [.all]], scope: .admin), stands: { true })
  }
}
