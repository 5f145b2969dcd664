/// Keys that may watch and are no JSON Web Tokens: those that the server knows itself.
package protocol ViewerCredentials: Sendable {
  /// What a key allows; nil for an unknown one. Compares in constant time.
  func credential(of key: String) -> ViewerCredential?
}

/// What a known key allows.
package struct ViewerCredential: Sendable {
  var grant: AccessGrant
  /// Whether the key is still known with this grant. Called often, from any thread.
  var stands: @Sendable () -> Bool
}
