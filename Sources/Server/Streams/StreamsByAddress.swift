internal import Ingest

/// Which streams the addresses hold that show no key, also those that are over and not forgotten yet: one address has at most
/// half of what there can be. A value.
struct StreamsByAddress: Sendable {
  /// So many streams, and the descriptors that they take.
  struct Share: Sendable, Hashable {
    var streams = 0
    var descriptors = 0
  }

  private struct Holding: Sendable {
    let address: String
    let descriptors: Int
  }

  private var holdings: [StreamName: Holding] = [:]
  private var shares: [String: Share] = [:]

  /// Streams that an address holds.
  func streams(of address: String) -> Int { shares[address]?.streams ?? 0 }

  /// Whether an address may hold a stream that takes so many descriptors, where `all` is what there can be: its first, one that
  /// it holds already, and else no more than half.
  func mayHold(_ stream: StreamName, _ address: String, descriptors: Int, of all: Share) -> Bool {
    guard holdings[stream]?.address != address, let share = shares[address] else { return true }
    return share.streams < all.streams / 2 && share.descriptors + descriptors <= all.descriptors / 2
  }

  /// A stream is an address's from now on; nobody's where that is nil.
  mutating func give(_ stream: StreamName, to address: String?, descriptors: Int) {
    if let before = holdings[stream], var share = shares[before.address] {
      share.streams -= 1
      share.descriptors -= before.descriptors
      shares[before.address] = share.streams > 0 ? share : nil
    }
    holdings[stream] = address.map { Holding(address: $0, descriptors: descriptors) }
    guard let address else { return }
    shares[address, default: Share()].streams += 1
    shares[address, default: Share()].descriptors += descriptors
  }
}
