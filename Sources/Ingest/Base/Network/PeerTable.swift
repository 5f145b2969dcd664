/// Counts per address: connections, connections that have not published yet (`unauthenticated`), and failures. A value type;
/// the caller gives it the time.
///
/// After too many failures, responses are delayed, not refused: other clients may share the address.
package struct PeerTable {
  private struct Peer {
    var unauthenticated = 0
    /// All connections, with those that publish.
    var connections = 0
    var failures: TokenBucket
    /// Set while the address is delayed, so that it is logged once.
    var isSlowed = false
    var seen: MonotonicTime
  }

  /// Why a connection is closed at once.
  package enum Refusal: Equatable {
    case tooManyUnauthenticated
    /// The address has reached its limit of connections.
    case tooMany
    /// The listener is closing.
    case closed
  }

  /// The address has failed too often.
  package struct Slowing: Equatable {
    /// The address was not delayed before.
    package var isNew: Bool
  }

  package var limits: PeerLimits
  private var peers: [String: Peer] = [:]
  private var unauthenticated = 0

  package init(limits: PeerLimits) {
    self.limits = limits
  }

  /// Number of remembered addresses.
  var remembered: Int { peers.count }

  /// Counts a new connection from `address`. Nil if it is admitted. `isProxy` means that the address stands for many
  /// clients.
  package mutating func arrive(_ address: String, isProxy: Bool = false, now: MonotonicTime) -> Refusal? {
    var peer = self[address, now]
    defer { peers[address] = peer }
    if !isProxy, let most = limits.connectionsPerAddress, peer.connections >= most { return .tooMany }
    guard isProxy || peer.unauthenticated < limits.unauthenticatedPerAddress,
      unauthenticated < limits.unauthenticated
    else {
      return .tooManyUnauthenticated
    }
    peer.unauthenticated += 1
    peer.connections += 1
    unauthenticated += 1
    return nil
  }

  /// Whether a connection that wants to publish must wait; nil if not. `isNew` is whether that is to be logged.
  package mutating func slowing(_ address: String, now: MonotonicTime) -> Slowing? {
    var peer = self[address, now]
    defer { peers[address] = peer }
    peer.failures.refill(now: now)
    guard peer.failures.tokens < 1 else {
      // Logged again only after half of the tokens are back, not for every token.
      if peer.failures.tokens >= limits.failureBurst / 2 { peer.isSlowed = false }
      return nil
    }
    defer { peer.isSlowed = true }
    return Slowing(isNew: !peer.isSlowed)
  }

  /// A connection has published, or has closed before that. `failed` is whether it broke the rules.
  package mutating func noLongerUnauthenticated(_ address: String, failed: Bool, now: MonotonicTime) {
    var peer = self[address, now]
    peer.unauthenticated = max(0, peer.unauthenticated - 1)
    unauthenticated = max(0, unauthenticated - 1)
    if failed { _ = peer.failures.take(now: now) }
    peers[address] = peer
    forgetSome(now)
  }

  /// A connection has closed, whether it has published or not.
  package mutating func leave(_ address: String) {
    guard let count = peers[address]?.connections, count > 0 else { return }
    peers[address]?.connections = count - 1
  }

  private subscript(address: String, now: MonotonicTime) -> Peer {
    var peer =
      peers[address]
      ?? Peer(failures: TokenBucket(burst: limits.failureBurst, perSecond: limits.failuresPerSecond), seen: now)
    peer.seen = now
    return peer
  }

  /// Forgets addresses with a full bucket. If there are still too many, forgets the oldest ones.
  private mutating func forgetSome(_ now: MonotonicTime) {
    guard peers.count > limits.addresses else { return }
    for (address, peer) in peers where peer.connections == 0 {
      var failures = peer.failures
      failures.refill(now: now)
      if failures.tokens >= limits.failureBurst { peers[address] = nil }
    }
    guard peers.count > limits.addresses else { return }
    let oldest = peers.filter { $0.value.connections == 0 }.sorted { $0.value.seen < $1.value.seen }
    for (address, _) in oldest.prefix(max(1, limits.addresses / 8)) { peers[address] = nil }
  }
}
