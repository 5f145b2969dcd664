internal import NIOCore
internal import Synchronization

/// Connections that were closed before they had said anything.
package struct RTMPRefusals: Sendable, Hashable {
  /// Their address had failed too often.
  package var banned = 0
  /// Too many were there already that did not publish.
  package var tooManyStrangers = 0
}

/// The connections of a listener, from whatever thread: who is at the door (`RTMPPeers`), and how each can be told
/// to end.
final class RTMPDoor: Sendable {
  private struct State {
    var peers: RTMPPeers
    var connections: [ObjectIdentifier: @Sendable () -> Void] = [:]
    var isClosed = false
    var refusals = RTMPRefusals()
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Mutex<State>

  init(limits: RTMPPeerLimits) {
    state = Mutex(State(peers: RTMPPeers(limits: limits)))
  }

  func arrive(_ peer: String, now: Int64) -> RTMPPeers.Refusal? {
    state.withLock { state in
      guard !state.isClosed else { return .closed }
      let refusal = state.peers.arrive(peer, now: now)
      switch refusal {
      case .banned: state.refusals.banned += 1
      case .tooManyStrangers: state.refusals.tooManyStrangers += 1
      case .closed, nil: break
      }
      return refusal
    }
  }

  var refusals: RTMPRefusals { state.withLock { $0.refusals } }

  func leaveDoor(_ peer: String, failed: Bool, now: Int64) {
    state.withLock { $0.peers.leaveDoor(peer, failed: failed, now: now) }
  }

  /// Remembers a connection until `remove`; `end` asks it to end. False when the listener is closing.
  func add(_ connection: AnyObject, end: @escaping @Sendable () -> Void) -> Bool {
    let key = ObjectIdentifier(connection)
    return state.withLock {
      if $0.isClosed { return false }
      $0.connections[key] = end
      return true
    }
  }

  func remove(_ connection: AnyObject) {
    let key = ObjectIdentifier(connection)
    let waiters = state.withLock { state in
      state.connections[key] = nil
      guard state.connections.isEmpty else { return [CheckedContinuation<Void, Never>]() }
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Nobody comes in any more; the ways to end those who are.
  func closeForGood() -> [@Sendable () -> Void] {
    state.withLock {
      $0.isClosed = true
      return Array($0.connections.values)
    }
  }

  /// Returns when no connection is left.
  func allGone() async {
    await withCheckedContinuation { continuation in
      let isEmpty = state.withLock { state in
        if state.connections.isEmpty { return true }
        state.waiters.append(continuation)
        return false
      }
      if isEmpty { continuation.resume() }
    }
  }

  // MARK: names of addresses

  /// The name of all that have no address.
  static let nobody = "unknown"

  /// What counts as one address: an IPv4 address, or the network half of an IPv6 one, which a single host owns.
  static func name(of address: SocketAddress?) -> String {
    guard case .v6(let v6)? = address else { return address?.ipAddress ?? nobody }
    // sockaddr_in6: family, port and flow label take 8 bytes, the address follows in network order.
    let bytes = withUnsafeBytes(of: v6.address) { Array($0.dropFirst(8).prefix(16)) }
    if bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF {
      return bytes[12...].map(String.init).joined(separator: ".")
    }
    let network = stride(from: 0, to: 8, by: 2).map { index in
      String(UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1]), radix: 16)
    }
    return network.joined(separator: ":") + "::/64"
  }

  /// Address and port for the log.
  static func text(of address: SocketAddress?) -> String {
    guard let address, let ip = address.ipAddress, let port = address.port else { return nobody }
    let mapped = "::ffff:"
    if ip.hasPrefix(mapped), ip.contains(".") { return "\(ip.dropFirst(mapped.count)):\(port)" }
    return ip.contains(":") ? "[\(ip)]:\(port)" : "\(ip):\(port)"
  }
}
