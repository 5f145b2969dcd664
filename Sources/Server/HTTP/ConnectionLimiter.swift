internal import Basics
internal import NIOCore
internal import Synchronization

/// Counts the connections of the whole server. Per address only those are counted that have not sent a request yet, unless
/// a limit is set: viewers are not counted against each other, since a CDN or an office is one address.
final class ConnectionLimiter: Sendable {
  enum Admission: Sendable, Equatable {
    /// With the memory that it is charged with.
    case served(MemoryBudget.Charge)
    /// The server is full: the peer hears so.
    case refused
    /// Too many even for that: closed without a word.
    case dropped
  }

  private struct Counts {
    var connections = 0
    /// Those of them that only hear that there is no room.
    var refused = 0
    var unproven: [String: Int] = [:]
    /// All of an address, where that is limited.
    var perAddress: [String: Int] = [:]
    var numbered = 0
  }

  private let capacity: Int
  private let refusedCapacity: Int
  private let unprovenPerAddress: Int
  private let perAddress: Int?
  private let memory: MemoryBudget
  private let descriptors: DescriptorBudget
  private let traffic: HTTPTraffic
  private let counts = Mutex(Counts())
  /// Rings when the last connection has gone.
  let emptied = Bell()

  /// `capacity` is the number of connections that are served where nothing else takes their descriptors.
  init(capacity: Int, limits: HTTPLimits, memory: MemoryBudget, descriptors: DescriptorBudget, traffic: HTTPTraffic) {
    self.descriptors = descriptors
    self.traffic = traffic
    self.capacity = capacity
    refusedCapacity = limits.refusedConnections
    unprovenPerAddress = limits.unprovenConnectionsPerAddress
    perAddress = limits.connectionsPerAddress
    self.memory = memory
  }

  /// There is little memory, or little is left.
  var isMemoryTight: Bool { memory.isTight }

  /// The connections that are open.
  var connections: Int { counts.withLock { $0.connections } }

  /// Numbers connections in the order in which they come.
  func nextNumber() -> Int {
    counts.withLock { counts in
      counts.numbered += 1
      return counts.numbered
    }
  }

  /// Counts a connection in unless it is dropped; whoever is counted in leaves once. `isProxy`: it stands for many.
  func admit(_ address: String, isTLS: Bool, isProxy: Bool = false) -> Admission {
    let charge = memory.take(isTLS ? MemoryBudget.secureConnectionBytes : MemoryBudget.plainConnectionBytes)
    let admission = admit(address, charge, isProxy: isProxy)
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

  private func admit(_ address: String, _ charge: MemoryBudget.Charge?, isProxy: Bool) -> Admission {
    counts.withLock { counts in
      guard counts.connections < capacity + refusedCapacity,
        isProxy || counts.unproven[address, default: 0] < unprovenPerAddress,
        isProxy || perAddress.map({ counts.perAddress[address, default: 0] < $0 }) ?? true
      else { return .dropped }
      let isServed = charge != nil && counts.connections - counts.refused < capacity && descriptors.takeViewer()
      // Hearing that there is no room takes memory and a descriptor as well.
      guard isServed || counts.refused < refusedCapacity else { return .dropped }
      counts.connections += 1
      counts.unproven[address, default: 0] += 1
      if perAddress != nil { counts.perAddress[address, default: 0] += 1 }
      if isServed, let charge { return .served(charge) }
      counts.refused += 1
      return .refused
    }
  }

  /// The connection has sent a whole request.
  func prove(_ address: String) {
    counts.withLock { Self.decrement(address, in: &$0.unproven) }
  }

  func leave(_ address: String, _ admission: Admission, isProven: Bool) {
    traffic.add(.openConnections, -1)
    if case .served(let charge) = admission {
      descriptors.giveBackViewer()
      memory.giveBack(charge)
    }
    let left = counts.withLock { counts in
      counts.connections -= 1
      if admission == .refused { counts.refused -= 1 }
      if !isProven { Self.decrement(address, in: &counts.unproven) }
      if perAddress != nil { Self.decrement(address, in: &counts.perAddress) }
      return counts.connections
    }
    if left == 0 { emptied.ring() }
  }

  private static func decrement(_ address: String, in counts: inout [String: Int]) {
    guard let count = counts[address] else { return }
    counts[address] = count > 1 ? count - 1 : nil
  }
}
