internal import Ingest

/// The places of viewers by address: how many each address has, which address has most, and its newest place. The cost of a
/// change does not depend on the number of viewers or addresses.
struct ViewerPlaces: Sendable {
  struct Place: Sendable {
    /// Later places have higher numbers.
    let number: Int
    let stream: StreamName
    let client: ClientID
  }

  private struct Address: Sendable {
    var count = 0
    /// Its places in order of arrival. Some may be free by now.
    var places: [Place] = []
  }

  /// A list is cleaned up when it has more than twice the taken places plus this many.
  private static let slack = 16

  private var addresses: [NetworkAddress: Address] = [:]
  /// Addresses by their number of places.
  private var ranks: [Int: Set<NetworkAddress>] = [:]
  /// The highest number of places of an address.
  private(set) var most = 0

  /// An address with the highest number.
  var largest: NetworkAddress? { ranks[most]?.first }

  /// The number of places of an address; 0 for nil.
  func count(of address: NetworkAddress?) -> Int {
    address.flatMap { addresses[$0]?.count } ?? 0
  }

  /// Changes the number of places of an address by `more`, which may be negative.
  mutating func change(_ address: NetworkAddress, by more: Int) {
    guard more != 0 else { return }
    let before = count(of: address)
    let after = max(0, before + more)
    ranks[before]?.remove(address)
    if ranks[before]?.isEmpty ?? false { ranks[before] = nil }
    if after > 0 {
      addresses[address, default: Address()].count = after
      ranks[after, default: []].insert(address)
    } else {
      addresses[address] = nil
    }
    most = max(most, after)
    while most > 0, ranks[most] == nil { most -= 1 }
  }

  /// Adds a place that is counted already. `isTaken` tells whether a place is still in use.
  mutating func add(_ place: Place, where isTaken: (Place) -> Bool) {
    guard let address = place.client.host, let count = addresses[address]?.count,
      let listed = addresses[address]?.places.count
    else { return }
    if listed >= 2 * count + Self.slack {
      addresses[address]?.places.removeAll { !isTaken($0) }
    }
    addresses[address]?.places.append(place)
  }

  /// The newest place of an address. `isTaken` tells whether a place is still in use.
  mutating func newest(of address: NetworkAddress, where isTaken: (Place) -> Bool) -> Place? {
    while let place = addresses[address]?.places.last {
      if isTaken(place) { return place }
      addresses[address]?.places.removeLast()
    }
    return nil
  }
}
