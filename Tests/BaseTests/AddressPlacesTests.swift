import Base
import Testing

@Suite struct AddressPlacesTests {
  private func address(_ number: Int) throws -> NetworkAddress {
    try #require(NetworkAddress(parsing: "10.0.\(number / 256).\(number % 256)"))
  }

  @Test func whoHasMostIsKnownWithEveryChange() throws {
    var places = AddressPlaces<NetworkAddress, Int>()
    #expect(places.largest == nil && places.most == 0)
    for number in 0..<600 { places.change(try address(number), by: 1) }
    #expect(places.most == 1)
    places.change(try address(300), by: 2)
    places.change(try address(400), by: 1)
    #expect(try places.largest == address(300) && places.most == 3)
    places.change(try address(300), by: -3)
    #expect(try places.largest == address(400) && places.most == 2)
    #expect(try places.count(of: address(300)) == 0 && places.count(of: nil) == 0)
    for number in 0..<600 where number != 300 { places.change(try address(number), by: -1) }
    #expect(try places.largest == address(400) && places.most == 1)
  }

  @Test func theNewestIsTheLastThatIsStillTaken() throws {
    var places = AddressPlaces<NetworkAddress, Int>()
    let host = try address(1)
    var taken: Set<Int> = []
    for number in 1...4 {
      places.change(host, by: 1)
      taken.insert(number)
      places.add(number, of: host) { taken.contains($0) }
    }
    taken.remove(4)
    taken.remove(2)
    places.change(host, by: -2)
    let third = places.newest(of: host) { taken.contains($0) }
    #expect(third == 3)
    taken.remove(3)
    places.change(host, by: -1)
    let first = places.newest(of: host) { taken.contains($0) }
    #expect(first == 1)
  }

  @Test func placesThatComeAndGoLeaveNothingBehind() throws {
    var places = AddressPlaces<NetworkAddress, Int>()
    let host = try address(1)
    places.change(host, by: 1)
    for number in 1...10_000 {
      places.add(number, of: host) { $0 == number - 1 }
    }
    #expect("\(places)".count < 20_000)
    let newest = places.newest(of: host) { $0 == 10_000 }
    #expect(newest == 10_000)
  }
}
