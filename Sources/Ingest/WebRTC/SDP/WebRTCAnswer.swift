/// The answer to an offer that was taken, of a publisher or of a viewer.
package struct WebRTCAnswer: Sendable {
  /// A session description (RFC 8866).
  package var description: String
  /// The name of the session; nobody can guess it.
  package var session: String
  /// With its quotes.
  package var entityTag: String
  /// Of a viewer: why it does not get a medium, one line for each.
  package var omissions: [String] = []
  /// Of a viewer: what it gets in place of the publication's own, likewise.
  package var replacements: [String] = []
}
