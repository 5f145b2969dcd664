internal import FMP4
package import Publishing

/// A token or key that was found to be good. It is kept by what it admitted, so that this ends when the token does.
package final class VerifiedToken: Sendable {
  let grant: AccessGrant
  private let now: @Sendable () -> WallTime
  private let stands: @Sendable () -> Bool

  /// - Parameter stands: whether it has not been revoked.
  init(_ grant: AccessGrant, now: @escaping @Sendable () -> WallTime, stands: @escaping @Sendable () -> Bool) {
    (self.grant, self.now, self.stands) = (grant, now, stands)
  }

  /// Whether it has neither expired nor been revoked.
  package var holds: Bool { grant.holds(at: now()) && stands() }

  /// Whole seconds until it expires.
  package func seconds(atMost most: Int64) -> Int64 {
    grant.ends.map { max(0, min(most, ($0 &- now()) / 1_000_000_000)) } ?? most
  }

  /// Administrators may watch all streams.
  package func mayWatch(_ stream: StreamName) -> Bool { grant.scope != nil || grant.allows(.watch, of: stream) }
}
