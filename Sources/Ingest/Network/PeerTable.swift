/// How many connections each address has, how many of them are strangers, and how often it has failed. A stranger is a
/// connection that has not published yet. A value, told what time it is.
///
/// Who fails too often is answered late, not turned away: others may share the address.
struct PeerTable {
  private struct Peer {
    var strangers = 0
    /// With those that publish.
    var connections = 0
    var failures: TokenBucket
    /// Set while it is slowed, so that this is told once.
    var isSlowed = false
    var seen: Int64
  }

  /// Why a connection is not even listened to.
  enum Refusal: Equatable {
    case tooManyStrangers
    /// The address has as many connections as it may.
    case tooMany
    /// The listener is closing.
    case closed
  }

  /// The address has failed too often.
  struct Slowing: Equatable {
    /// It had not the time before.
    var isNew: Bool
  }

  private let limits: PeerLimits
  private var peers: [String: Peer] = [:]
  private var strangers = 0

  init(limits: PeerLimits) {
    self.limits = limits
  }

  /// How many addresses are remembered.
  var remembered: Int { peers.count }

  /// A connection has come from `address`; nil admits it as a stranger. `isProxy`: the address stands for many.
  mutating func arrive(_ address: String, isProxy: Bool = false, now: Int64) -> Refusal? {
    var peer = self[address, now]
    defer { peers[address] = peer }
    if !isProxy, let most = limits.connectionsPerAddress, peer.connections >= most { return .tooMany }
    guard isProxy || peer.strangers < limits.strangersPerAddress, strangers < limits.strangers else {
      return .tooManyStrangers
    }
    peer.strangers += 1
    peer.connections += 1
    strangers += 1
    return nil
  }

  /// Somebody at the address wants to publish. Nil where it may at once; otherwise it waits, and `isNew` is whether that is
  /// to be told.
  mutating func slowing(_ address: String, now: Int64) -> Slowing? {
    var peer = self[address, now]
    defer { peers[address] = peer }
    peer.failures.refill(now: now)
    guard peer.failures.tokens < 1 else {
      // Told again only after a time of peace, not at every token.
      if peer.failures.tokens >= limits.failureBurst / 2 { peer.isSlowed = false }
      return nil
    }
    defer { peer.isSlowed = true }
    return Slowing(isNew: !peer.isSlowed)
  }

  /// A stranger has published, or is gone; `failed` when it did what is not allowed.
  mutating func noLongerStranger(_ address: String, failed: Bool, now: Int64) {
    var peer = self[address, now]
    peer.strangers = max(0, peer.strangers - 1)
    strangers = max(0, strangers - 1)
    if failed { _ = peer.failures.take(now: now) }
    peers[address] = peer
    forgetSome(now)
  }

  /// A connection is gone, whether it has published or not.
  mutating func leave(_ address: String) {
    guard let count = peers[address]?.connections, count > 0 else { return }
    peers[address]?.connections = count - 1
  }

  private subscript(address: String, now: Int64) -> Peer {
    var peer =
      peers[address]
      ?? Peer(failures: TokenBucket(burst: limits.failureBurst, perSecond: limits.failuresPerSecond), seen: now)
    peer.seen = now
    return peer
  }

  /// Addresses whose bucket is full again say nothing; when there are too many, the oldest go first.
  private mutating func forgetSome(_ now: Int64) {
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
