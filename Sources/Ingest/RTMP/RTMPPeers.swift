/// What is known of the addresses that knock: how many strangers each has at the door, and how often it failed.
/// A stranger is a connection that has not published yet. A value, told what time it is.
struct RTMPPeers {
  private struct Peer {
    var strangers = 0
    var failures: TokenBucket
    /// Set while it is turned away, so that this is told once.
    var isBanned = false
    var seen: Int64
  }

  /// Why a connection is not even listened to.
  enum Refusal: Equatable {
    case tooManyStrangers
    /// The listener is closing.
    case closed
    /// The address failed too often; `isNew` when it was still listened to the time before.
    case banned(seconds: Int, isNew: Bool)
  }

  private let limits: RTMPPeerLimits
  private var peers: [String: Peer] = [:]
  private var strangers = 0

  init(limits: RTMPPeerLimits) {
    self.limits = limits
  }

  /// How many addresses are remembered.
  var remembered: Int { peers.count }

  /// A connection has come from `address`; nil admits it as a stranger.
  mutating func arrive(_ address: String, now: Int64) -> Refusal? {
    var peer = self[address, now]
    defer { peers[address] = peer }
    peer.failures.refill(now: now)
    if peer.failures.tokens < 1 {
      let isNew = !peer.isBanned
      peer.isBanned = true
      return .banned(seconds: Int(peer.failures.secondsUntilToken.rounded(.up)), isNew: isNew)
    }
    // Told again only after a time of peace, not at every token.
    if peer.failures.tokens >= limits.failureBurst / 2 { peer.isBanned = false }
    guard peer.strangers < limits.strangersPerAddress, strangers < limits.strangers else {
      return .tooManyStrangers
    }
    peer.strangers += 1
    strangers += 1
    return nil
  }

  /// A stranger has published, or is gone; `failed` when it did what is not allowed or left without publishing.
  mutating func leaveDoor(_ address: String, failed: Bool, now: Int64) {
    var peer = self[address, now]
    peer.strangers = max(0, peer.strangers - 1)
    strangers = max(0, strangers - 1)
    if failed { _ = peer.failures.take(now: now) }
    peers[address] = peer
    forgetSome(now)
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
    for (address, peer) in peers where peer.strangers == 0 {
      var failures = peer.failures
      failures.refill(now: now)
      if failures.tokens >= limits.failureBurst { peers[address] = nil }
    }
    guard peers.count > limits.addresses else { return }
    let oldest = peers.filter { $0.value.strangers == 0 }.sorted { $0.value.seen < $1.value.seen }
    for (address, _) in oldest.prefix(max(1, limits.addresses / 8)) { peers[address] = nil }
  }
}
