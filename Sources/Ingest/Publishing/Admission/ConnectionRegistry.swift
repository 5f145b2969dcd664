package import Base
package import FMP4
package import NIOCore
internal import Synchronization

/// Counters of connections that were refused or delayed before authorisation.
package struct ConnectionRefusals: Sendable, Hashable {
  /// Delayed, because their address had failed too often.
  package var slowed = 0
  /// Refused, because too many connections had not published yet.
  package var tooManyUnauthenticated = 0
}

extension ConnectionRefusals {
  /// Sum over several listeners.
  package init(sumOf all: [Self]) {
    self.init(
      slowed: all.reduce(0) { $0 + $1.slowed }, tooManyUnauthenticated: all.reduce(0) { $0 + $1.tooManyUnauthenticated }
    )
  }
}

/// The connections of a listener; safe to use from any thread. Counts connections per address (`PeerTable`), and can
/// end each connection.
package final class ConnectionRegistry: Sendable {
  private struct State {
    var peers: PeerTable
    var connections: [ObjectIdentifier: (localAddress: SocketAddress?, end: @Sendable (EndReason) -> Void)] = [:]
    var isClosed = false
    var refusals = ConnectionRefusals()
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Mutex<State>

  package init(limits: PeerLimits) {
    state = Mutex(State(peers: PeerTable(limits: limits)))
  }

  package func arrive(_ peer: String, isProxy: Bool, now: MonotonicTime) -> PeerTable.Refusal? {
    state.withLock { state in
      guard !state.isClosed else { return .closed }
      let refusal = state.peers.arrive(peer, isProxy: isProxy, now: now)
      switch refusal {
      case .tooManyUnauthenticated, .tooMany: state.refusals.tooManyUnauthenticated += 1
      case .closed, nil: break
      }
      return refusal
    }
  }

  package var refusals: ConnectionRefusals { state.withLock { $0.refusals } }

  /// Whether connections from the address must wait; see `PeerTable`.
  package func slowing(_ peer: String, now: MonotonicTime) -> PeerTable.Slowing? {
    state.withLock { state in
      let slowing = state.peers.slowing(peer, now: now)
      if slowing != nil { state.refusals.slowed += 1 }
      return slowing
    }
  }

  package func noLongerUnauthenticated(_ peer: String, failed: Bool, now: MonotonicTime) {
    state.withLock { $0.peers.noLongerUnauthenticated(peer, failed: failed, now: now) }
  }

  /// Replaces the most connections of one address; nil for no limit.
  package func limit(connectionsPerAddress: Int?) {
    state.withLock { $0.peers.limits.connectionsPerAddress = connectionsPerAddress }
  }

  /// A connection that `arrive` has counted is gone, without `add`.
  package func leave(_ peer: String) {
    state.withLock { $0.peers.leave(peer) }
  }

  /// Keeps a connection until `remove`. `localAddress` is the address that it was accepted at; `end` asks it to end. False if the
  /// listener is closing.
  package func add(
    _ connection: AnyObject, at localAddress: SocketAddress?, end: @escaping @Sendable (EndReason) -> Void
  )
    -> Bool
  {
    let key = ObjectIdentifier(connection)
    return state.withLock {
      if $0.isClosed { return false }
      $0.connections[key] = (localAddress, end)
      return true
    }
  }

  package func remove(_ connection: AnyObject, of peer: String) {
    let key = ObjectIdentifier(connection)
    let waiters = state.withLock { state in
      state.peers.leave(peer)
      state.connections[key] = nil
      guard state.connections.isEmpty else { return [CheckedContinuation<Void, Never>]() }
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Admits no more connections. Returns the functions that end the present ones.
  package func closeForGood() -> [@Sendable (EndReason) -> Void] {
    state.withLock {
      $0.isClosed = true
      return $0.connections.values.map(\.end)
    }
  }

  /// The functions that end the present connections of an address that was listened at.
  package func ends(at localAddress: SocketAddress) -> [@Sendable (EndReason) -> Void] {
    state.withLock { $0.connections.values.filter { $0.localAddress == localAddress }.map(\.end) }
  }

  /// Returns when no connection is left.
  package func allGone() async {
    await withCheckedContinuation { continuation in
      let isEmpty = state.withLock { state in
        if state.connections.isEmpty { return true }
        state.waiters.append(continuation)
        return false
      }
      if isEmpty { continuation.resume() }
    }
  }
}
