/// Places by address: how many each address has, which address has most, and its newest place. The cost of a change does not
/// depend on the number of places or addresses.
package struct AddressPlaces<Address: Hashable & Sendable, Place: Sendable>: Sendable {
  private struct Held: Sendable {
    var count = 0
    /// Its places in order of arrival. Some may be free by now.
    var places: [Place] = []
  }

  /// A list is cleaned up when it has more than twice the taken places plus this many.
  private static var slack: Int { 16 }

  private var addresses: [Address: Held] = [:]
  /// Addresses by their number of places.
  private var ranks: [Int: Set<Address>] = [:]
  /// The highest number of places of an address.
  package private(set) var most = 0

  /// An address with the highest number.
  package var largest: Address? { ranks[most]?.first }

  /// The number of places of an address; 0 for nil.
  package func count(of address: Address?) -> Int {
    address.flatMap { addresses[$0]?.count } ?? 0
  }

  /// Changes the number of places of an address by `more`, which may be negative.
  package mutating func change(_ address: Address, by more: Int) {
    guard more != 0 else { return }
    let before = count(of: address)
    let after = max(0, before + more)
    ranks[before]?.remove(address)
    if ranks[before]?.isEmpty ?? false { ranks[before] = nil }
    if after > 0 {
      addresses[address, default: Held()].count = after
      ranks[after, default: []].insert(address)
    } else {
      addresses[address] = nil
    }
    most = max(most, after)
    while most > 0, ranks[most] == nil { most -= 1 }
  }

  package init() {}

  /// Adds a place that is counted already. `isTaken` tells whether a place is still in use.
  package mutating func add(_ place: Place, of address: Address, where isTaken: (Place) -> Bool) {
    guard let count = addresses[address]?.count,
      let listed = addresses[address]?.places.count
    else { return }
    if listed >= 2 * count + Self.slack {
      addresses[address]?.places.removeAll { !isTaken($0) }
    }
    addresses[address]?.places.append(place)
  }

  /// The newest place of an address. `isTaken` tells whether a place is still in use.
  package mutating func newest(of address: Address, where isTaken: (Place) -> Bool) -> Place? {
    while let place = addresses[address]?.places.last {
      if isTaken(place) { return place }
      addresses[address]?.places.removeLast()
    }
    return nil
  }
}
