/// Limits for connections before they publish. Only connections that have not published count. Only failures take
/// tokens: wrong keys, and bytes that break the protocol. An admitted publisher takes none, and neither does a
/// connection that closes without sending anything.
package struct PeerLimits: Sendable {
  /// Connections per address that have not published yet.
  package var unauthenticatedPerAddress = 256
  /// Connections of all addresses that have not published yet.
  package var unauthenticated = 8192
  /// All connections per address that is not a trusted proxy. Nil: no limit.
  package var connectionsPerAddress: Int?
  /// Failures of an address that are allowed at once.
  package var failureBurst = 100.0
  /// Failures per second that are forgiven.
  package var failuresPerSecond = 5.0
  /// Most addresses that are remembered. The oldest is forgotten first.
  package var addresses = 65_536

  package init() {}

  /// Allows so many connections that have not published, and one address a quarter of them: others must be able to come.
  package mutating func share(_ unauthenticated: Int) {
    self.unauthenticated = min(self.unauthenticated, unauthenticated)
    let most = max(1, min(16, self.unauthenticated / 2), self.unauthenticated / 4)
    unauthenticatedPerAddress = min(unauthenticatedPerAddress, most)
  }
}
