internal import Basics
internal import NIOCore
internal import Synchronization

/// Counts the connections of the whole server. Per address it counts only connections without a complete request, unless a
/// limit per address is set: many viewers behind a CDN or an office share one address.
final class ConnectionLimiter: Sendable {
  enum Admission: Sendable, Equatable {
    /// Served, with this charge of memory.
    case served(MemoryBudget.Charge)
    /// The server is full; the client gets a response that says so.
    case refused
    /// Too many connections even for that; closed without a response.
    case dropped
  }

  private struct Counts {
    var connections = 0
    /// Connections that only get a response that the server is full.
    var refused = 0
    /// Those of them that have it and wait for their clients to close, oldest first.
    var answered: [(number: Int, channel: any Channel)] = []
    /// The numbers of those that are being closed for new ones.
    var displaced: Set<Int> = []
    var unproven: [String: Int] = [:]
    /// All connections of an address.
    var perAddress: [String: Int] = [:]
    var numbered = 0
  }

  private let policy: Reloadable<HTTPPolicy>
  private let refusedCapacity: Int
  private let unprovenPerAddress: Int
  private let memory: MemoryBudget
  private let descriptors: DescriptorBudget
  private let traffic: HTTPTraffic
  private let counts = Mutex(Counts())
  /// Rings when the last connection has closed.
  let emptied = Bell()

  init(
    _ policy: Reloadable<HTTPPolicy>, limits: HTTPLimits, memory: MemoryBudget, descriptors: DescriptorBudget,
    traffic: HTTPTraffic
  ) {
    self.policy = policy
    self.descriptors = descriptors
    self.traffic = traffic
    // Of few descriptors these must not take what the server itself needs.
    refusedCapacity = min(limits.refusedConnections, max(8, descriptors.limit / 16))
    unprovenPerAddress = limits.unprovenConnectionsPerAddress
    self.memory = memory
  }

  /// The most served connections, when nothing else uses their descriptors.
  var capacity: Int { min(policy.now.connections, descriptors.viewers) }

  /// The memory limit is small, or little memory is left.
  var isMemoryTight: Bool { memory.isTight }

  /// The open connections.
  var connections: Int { counts.withLock { $0.connections } }

  /// A number for a new connection, in order of arrival.
  func nextNumber() -> Int {
    counts.withLock { counts in
      counts.numbered += 1
      return counts.numbered
    }
  }

  /// Admits a connection. Unless it is dropped, it must leave once. `isProxy`: the address stands for many clients.
  func admit(_ address: String, isTLS: Bool, isProxy: Bool = false) -> Admission {
    let charge = memory.take(isTLS ? MemoryBudget.secureConnectionBytes : MemoryBudget.plainConnectionBytes)
    let (admission, displaced) = admit(address, charge, isProxy: isProxy)
    displaced?.close(promise: nil)
    if let charge, admission != .served(charge) { memory.giveBack(charge) }
    switch admission {
    case .served: traffic.add(.openConnections)
    case .refused:
      traffic.add(.openConnections)
      traffic.add(.refusedConnections)
    case .dropped: traffic.add(.droppedConnections)
    }
    return admission
  }

  private func admit(
    _ address: String, _ charge: MemoryBudget.Charge?, isProxy: Bool
  ) -> (Admission, displaced: (any Channel)?) {
    let (capacity, perAddress) = (capacity, policy.now.connectionsPerAddress)
    return counts.withLock { counts in
      var displaced: (any Channel)?
      guard
        isProxy || counts.unproven[address, default: 0] < unprovenPerAddress,
        isProxy || perAddress.map({ counts.perAddress[address, default: 0] < $0 }) ?? true
      else { return (.dropped, nil) }
      let isServed = charge != nil && counts.connections - counts.refused < capacity && descriptors.takeViewer()
      // The response of a full server also needs memory and a descriptor.
      if !isServed, counts.refused - counts.displaced.count >= refusedCapacity {
        displaced = displace(&counts)
        guard displaced != nil else { return (.dropped, nil) }
      }
      counts.connections += 1
      counts.unproven[address, default: 0] += 1
      counts.perAddress[address, default: 0] += 1
      if isServed, let charge { return (.served(charge), nil) }
      counts.refused += 1
      return (.refused, displaced)
    }
  }

  /// Makes room for a connection that is refused: a crowd that does not hang up must not keep others from `/healthz`.
  private func displace(_ counts: inout Counts) -> (any Channel)? {
    guard !counts.answered.isEmpty, counts.displaced.count < refusedCapacity else { return nil }
    let oldest = counts.answered.removeFirst()
    counts.displaced.insert(oldest.number)
    return oldest.channel
  }

  /// The refused connection of this number has its response. It is closed when a new one needs its place.
  func answered(_ number: Int, on channel: any Channel) {
    counts.withLock { $0.answered.append((number, channel)) }
  }

  /// The connection has sent a complete request.
  func prove(_ address: String) {
    counts.withLock { Self.decrement(address, in: &$0.unproven) }
  }

  func leave(_ address: String, _ admission: Admission, number: Int, isProven: Bool) {
    traffic.add(.openConnections, -1)
    if case .served(let charge) = admission {
      descriptors.giveBackViewer()
      memory.giveBack(charge)
    }
    let left = counts.withLock { counts in
      counts.connections -= 1
      if admission == .refused {
        counts.refused -= 1
        counts.answered.removeAll { $0.number == number }
        counts.displaced.remove(number)
      }
      if !isProven { Self.decrement(address, in: &counts.unproven) }
      Self.decrement(address, in: &counts.perAddress)
      return counts.connections
    }
    if left == 0 { emptied.ring() }
  }

  private static func decrement(_ address: String, in counts: inout [String: Int]) {
    guard let count = counts[address] else { return }
    counts[address] = count > 1 ? count - 1 : nil
  }
}
