internal import Ingest

/// The places of viewers by address: how many each has, which address has most, and which of its places came last. What a
/// change costs does not grow with the number of viewers nor of addresses.
struct ViewerPlaces: Sendable {
  struct Place: Sendable {
    /// The later it came, the higher.
    let number: Int
    let stream: StreamName
    let client: ClientID
  }

  private struct Address: Sendable {
    var count = 0
    /// Its places in the order in which they came; some may have been given up since.
    var places: [Place] = []
  }

  /// So many places more than twice those that are taken may be in a list before it is tidied up.
  private static let slack = 16

  private var addresses: [NetworkAddress: Address] = [:]
  /// Addresses by how many places they have.
  private var ranks: [Int: Set<NetworkAddress>] = [:]
  /// Places of an address that has most.
  private(set) var most = 0

  /// An address that has most.
  var largest: NetworkAddress? { ranks[most]?.first }

  /// Places of an address; none where there is no address.
  func count(of address: NetworkAddress?) -> Int {
    address.flatMap { addresses[$0]?.count } ?? 0
  }

  /// An address has so many places more, or less.
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

  /// A place was taken, and its address counts it already. `isTaken` tells whether somebody still has a place.
  mutating func add(_ place: Place, where isTaken: (Place) -> Bool) {
    guard let address = place.client.host, let count = addresses[address]?.count,
      let listed = addresses[address]?.places.count
    else { return }
    if listed >= 2 * count + Self.slack {
      addresses[address]?.places.removeAll { !isTaken($0) }
    }
    addresses[address]?.places.append(place)
  }

  /// The newest place of an address. `isTaken` tells whether somebody still has a place.
  mutating func newest(of address: NetworkAddress, where isTaken: (Place) -> Bool) -> Place? {
    while let place = addresses[address]?.places.last {
      if isTaken(place) { return place }
      addresses[address]?.places.removeLast()
    }
    return nil
  }
}
