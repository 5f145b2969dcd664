/// Whether publishers need a key.
package enum PublishersRule: String, Sendable, Hashable, CaseIterable {
  /// They do once there is a key that allows to publish, or a callback, and then for good: revoking the last key does not open the
  /// server.
  case auto
  /// They always do.
  case key
  /// Only while there is such a key or a callback. It forgets that there were keys before.
  case open
}
