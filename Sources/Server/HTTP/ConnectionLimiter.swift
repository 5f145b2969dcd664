internal import Base
internal import NIOCore
internal import Synchronization

/// Counts the connections of the whole server. Per address it counts only connections without a complete request, unless a
/// limit per address is set: many viewers behind a CDN or an office share one address. When the server is full, a new connection
/// gets the place of the newest one of the address with most, if that has more than the new one's address will have.
final class ConnectionLimiter: Sendable {
  enum Admission: Sendable, Equatable {
    /// Served, with this charge of memory.
    case served(MemoryBudget.Charge)
    /// The server is full; the client gets a response that says so.
    case refused
    /// The address has as many connections as it may have; this one may ask whether the server lives, and nothing else.
    case probing
    /// Too many connections even for that; closed without a response.
    case dropped
  }

  private struct Counts {
    var connections = 0
    /// The most of them at once since the last `takePeak`.
    var peak = 0
    /// The refused connections that are not being closed for new ones, oldest first.
    var refused: [Refused] = []
    /// The numbers of the served connections that are being closed for new ones, and of the refused ones.
    var displaced: Set<Int> = []
    var displacedRefused: Set<Int> = []
    /// Connections of each address without a complete request.
    var requestless: [String: Int] = [:]
    /// All connections of each address that is no proxy.
    var perAddress: [String: Int] = [:]
    /// The served ones of them, by their numbers, and those of each address.
    var served: [Int: any Channel] = [:]
    var places = AddressPlaces<String, Int>()
    var numbered = 0

    mutating func serve(_ number: Int, of address: String, on channel: any Channel) {
      served[number] = channel
      places.change(address, by: 1)
      let served = served
      places.add(number, of: address) { served[$0] != nil }
    }

    /// A connection is served no longer.
    mutating func leave(_ number: Int, of address: String) -> (any Channel)? {
      guard let channel = served.removeValue(forKey: number) else { return nil }
      places.change(address, by: -1)
      return channel
    }

    private mutating func newest(of address: String) -> Int? {
      let served = served
      return places.newest(of: address) { served[$0] != nil }
    }

    /// Ends the newest connection of the address with most. Nil if that has no more than `least`.
    mutating func displace(beyond least: Int) -> (any Channel)? {
      guard places.most > least, let largest = places.largest, let number = newest(of: largest) else { return nil }
      displaced.insert(number)
      return leave(number, of: largest)
    }
  }

  /// A connection that only gets a response that the server is full, or may only probe.
  private struct Refused {
    let number: Int
    let address: String
    let channel: any Channel
    let mayOnlyProbe: Bool
    /// It has its response, and waits for its client to close.
    var isAnswered = false
  }

  /// Where a connection comes from.
  struct Client {
    /// The address for counting.
    let address: String
    /// The address stands for many clients.
    var isProxy = false
    /// It is a command of the machine itself.
    var isControl = false
  }

  /// Connections of all that there can be at once which only addresses without a refused one get.
  private static let reserved = 4
  /// Connections of an address beyond those that it may have, which may only probe.
  static let probesPerAddress = 4

  private let policy: Reloadable<HTTPPolicy>
  private let refusedCapacity: Int
  private let requestlessPerAddress: Int
  private let memory: MemoryBudget
  private let descriptors: DescriptorBudget
  private let traffic: HTTPTraffic
  private let waker: Waker
  private let counts = Mutex(Counts())
  /// Rings when the last connection has closed.
  let emptied = Bell()

  init(
    _ policy: Reloadable<HTTPPolicy>, limits: HTTPLimits, memory: MemoryBudget, descriptors: DescriptorBudget,
    traffic: HTTPTraffic, waker: Waker
  ) {
    self.policy = policy
    self.waker = waker
    self.descriptors = descriptors
    self.traffic = traffic
    // Of few descriptors these must not take what the server itself needs.
    refusedCapacity = min(limits.refusedConnections, max(4, descriptors.limit / 16))
    requestlessPerAddress = limits.requestlessConnectionsPerAddress
    self.memory = memory
  }

  /// The most served connections, when nothing else uses their descriptors.
  var capacity: Int { min(policy.now.connections, descriptors.viewers) }

  /// The memory limit is small, or little memory is left.
  var isMemoryTight: Bool { memory.isTight }

  /// The open connections.
  var connections: Int { counts.withLock { $0.connections } }

  /// The most connections that were open at once since the last call.
  func takePeak() -> Int {
    counts.withLock { counts in
      defer { counts.peak = counts.connections }
      return counts.peak
    }
  }

  /// Admits a connection. Unless it is dropped, it must leave once. Its number is in order of arrival.
  func admit(_ client: Client, on channel: any Channel, isTLS: Bool) -> (admission: Admission, number: Int) {
    let charge = memory.take(isTLS ? MemoryBudget.secureConnectionBytes : MemoryBudget.plainConnectionBytes)
    let (admission, number, displaced, isFirst) = admit(client, charge, on: channel)
    displaced?.closeAtOnce()
    if isFirst { waker.wake() }
    if let charge, admission != .served(charge) { memory.giveBack(charge) }
    switch admission {
    case .served:
      traffic.add(.openConnections)
      if displaced != nil { traffic.add(.displacedConnections) }
    case .refused:
      traffic.add(.openConnections)
      traffic.add(.refusedConnections)
    case .probing:
      traffic.add(.openConnections)
      traffic.add(.droppedConnections)
    case .dropped: traffic.add(.droppedConnections)
    }
    return (admission, number)
  }

  private func admit(
    _ client: Client, _ charge: MemoryBudget.Charge?, on channel: any Channel
  ) -> (Admission, number: Int, displaced: (any Channel)?, isFirst: Bool) {
    let (capacity, perAddress, address) = (capacity, policy.now.connectionsPerAddress, client.address)
    return counts.withLock { counts in
      counts.numbered += 1
      let number = counts.numbered
      // The last ones are for addresses that have none refused: a crowd must not keep a probe away, also from where viewers are.
      func mayTakeReserve() -> Bool { !counts.refused.contains { $0.address == address } }
      let isNear = counts.connections >= descriptors.connections - Self.reserved
      guard client.isControl || !isNear || counts.connections < descriptors.connections && mayTakeReserve()
      else { return (.dropped, number, nil, false) }
      guard
        client.isProxy
          || counts.requestless[address, default: 0] < requestlessPerAddress
            && counts.perAddress[address, default: 0] < perAddress ?? .max
      else {
        let (isAdmitted, displaced) = admitProbe(number, of: address, on: channel, &counts)
        return (isAdmitted ? .probing : .dropped, number, displaced, false)
      }
      var (admission, displaced) = (Admission.refused, (any Channel)?.none)
      let served =
        counts.connections - counts.refused.count - counts.displaced.count - counts.displacedRefused.count
      if let charge, served < capacity, descriptors.takeViewer() {
        admission = .served(charge)
      } else if let charge, let channel = displaceServed(for: client, &counts) {
        (admission, displaced) = (.served(charge), channel)
      } else if counts.refused.count >= refusedCapacity, !client.isControl {
        // The response of a full server also needs memory and a descriptor. Those that were told to go may not have gone yet.
        displaced = displaceRefused(&counts)
        guard displaced != nil || counts.refused.count < refusedCapacity + Self.reserved && mayTakeReserve() else {
          return (.dropped, number, nil, false)
        }
      }
      counts.connections += 1
      counts.peak = max(counts.peak, counts.connections)
      counts.requestless[address, default: 0] += 1
      if !client.isProxy {
        counts.perAddress[address, default: 0] += 1
        if admission != .refused { counts.serve(number, of: address, on: channel) }
      }
      if admission == .refused {
        counts.refused.append(Refused(number: number, address: address, channel: channel, mayOnlyProbe: false))
      }
      return (admission, number, displaced, counts.connections == 1)
    }
  }

  /// Admits a connection beyond those that its address may have. It counts for none of the limits of its address, since it is soon
  /// over. False if it must be dropped. What it takes the place of is to be closed.
  private func admitProbe(
    _ number: Int, of address: String, on channel: any Channel, _ counts: inout Counts
  ) -> (isAdmitted: Bool, displaced: (any Channel)?) {
    let own = counts.refused.count { $0.mayOnlyProbe && $0.address == address }
    var displaced: (any Channel)?
    if own >= Self.probesPerAddress || counts.refused.count >= refusedCapacity {
      displaced = displaceRefused(&counts, of: own >= Self.probesPerAddress ? address : nil)
      guard displaced != nil else { return (false, nil) }
    }
    counts.connections += 1
    counts.peak = max(counts.peak, counts.connections)
    counts.refused.append(Refused(number: number, address: address, channel: channel, mayOnlyProbe: true))
    return (true, displaced)
  }

  /// Takes the place of the newest connection of the address with most, and returns its channel, to be closed. Its descriptor
  /// goes to the new client. Nil if that address has no more than the new client's will have: two must not replace each other
  /// without end.
  private func displaceServed(for client: Client, _ counts: inout Counts) -> (any Channel)? {
    guard counts.displaced.count < refusedCapacity else { return nil }
    return counts.displace(beyond: (client.isProxy ? 0 : counts.places.count(of: client.address)) + 1)
  }

  /// Makes room for a connection that is refused: a crowd that does not hang up, or sends nothing, must not keep others from
  /// `/healthz`. The oldest that has its response goes, else the oldest of the address with most. With an address: of those of it
  /// that may only probe.
  private func displaceRefused(_ counts: inout Counts, of address: String? = nil) -> (any Channel)? {
    guard counts.displacedRefused.count < refusedCapacity else { return nil }
    func isCandidate(_ refused: Refused) -> Bool {
      address == nil || refused.mayOnlyProbe && refused.address == address
    }
    var perAddress: [String: Int] = [:]
    for refused in counts.refused where isCandidate(refused) { perAddress[refused.address, default: 0] += 1 }
    let largest = perAddress.max { $0.value < $1.value }?.key
    guard
      let index = counts.refused.firstIndex(where: { $0.isAnswered && isCandidate($0) })
        ?? counts.refused.firstIndex(where: { $0.address == largest && isCandidate($0) })
    else { return nil }
    let oldest = counts.refused.remove(at: index)
    counts.displacedRefused.insert(oldest.number)
    return oldest.channel
  }

  /// The connection carries a publisher, and is not closed for a viewer.
  func keep(_ number: Int, of address: String) {
    counts.withLock { _ = $0.leave(number, of: address) }
  }

  /// The refused connection of this number has its response.
  func answered(_ number: Int) {
    counts.withLock { counts in
      guard let index = counts.refused.firstIndex(where: { $0.number == number }) else { return }
      counts.refused[index].isAnswered = true
    }
  }

  /// The connection, which does more than to probe, has sent a complete request.
  func requestArrived(from address: String) {
    counts.withLock { Self.decrement(address, in: &$0.requestless) }
  }

  func leave(_ client: Client, _ admission: Admission, number: Int, hasSentRequest: Bool) {
    traffic.add(.openConnections, -1)
    let (left, isDisplaced) = counts.withLock { counts in
      counts.connections -= 1
      counts.refused.removeAll { $0.number == number }
      _ = counts.leave(number, of: client.address)
      if admission != .probing {
        if !hasSentRequest { Self.decrement(client.address, in: &counts.requestless) }
        if !client.isProxy { Self.decrement(client.address, in: &counts.perAddress) }
      }
      counts.displacedRefused.remove(number)
      return (counts.connections, counts.displaced.remove(number) != nil)
    }
    if case .served(let charge) = admission {
      if !isDisplaced { descriptors.giveBackViewer() }
      memory.giveBack(charge)
    }
    if left == 0 { emptied.ring() }
  }

  private static func decrement(_ address: String, in counts: inout [String: Int]) {
    guard let count = counts[address] else { return }
    counts[address] = count > 1 ? count - 1 : nil
  }
}

extension Channel {
  /// Closes the connection soon, and does not wait for the client, as TLS would: it may not answer, and so keep its place and memory.
  func closeAtOnce() {
    eventLoop.execute {
      self._channelCore.close0(error: ChannelError.ioOnClosedChannel, mode: .all, promise: nil)
    }
  }
}
