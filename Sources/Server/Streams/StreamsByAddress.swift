internal import Publishing

/// The streams of addresses without a key, including ended streams that are not removed yet. One address can hold at most half
/// of the possible streams. A value type.
struct StreamsByAddress: Sendable {
  /// A number of streams, and of their descriptors.
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

  /// The number of streams of an address.
  func streams(of address: String) -> Int { shares[address]?.streams ?? 0 }

  /// Whether an address may hold a stream with so many descriptors. `all` is the most that is possible. Allowed are its first
  /// stream, a stream that it holds already, and up to half of `all`.
  func mayHold(_ stream: StreamName, _ address: String, descriptors: Int, of all: Share) -> Bool {
    guard holdings[stream]?.address != address, let share = shares[address] else { return true }
    return share.streams < all.streams / 2 && share.descriptors + descriptors <= all.descriptors / 2
  }

  /// Assigns a stream to an address; nil for none.
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
