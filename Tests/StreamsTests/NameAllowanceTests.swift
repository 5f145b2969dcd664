import Base
import Publishing
@testable import Streams
import Support
import Testing

@Suite struct NameAllowanceTests {
  private static let second: Int64 = 1_000_000_000

  private static func name(_ number: Int) throws -> StreamName { try #require(StreamName("n\(number)")) }

  private static func take(
    _ allowance: inout NameAllowance, _ name: StreamName, _ address: String, _ now: MonotonicTime
  ) throws -> Int? {
    allowance.take(name, by: address, now: now)
  }

  @Test func anAddressHasSoManyNamesAtOnceAndSomeMoreEachMinute() throws {
    var allowance = NameAllowance(NameAllowance.Limits(streams: 1000, names: 64, namesPerMinute: 16))
    for number in 0..<64 { #expect(try Self.take(&allowance, Self.name(number), "a", 0) == nil) }
    #expect(try Self.take(&allowance, Self.name(64), "a", 0) == 4)
    #expect(try Self.take(&allowance, Self.name(64), "b", 0) == nil, "others do not pay")
    #expect(try Self.take(&allowance, Self.name(5), "a", 0) == nil, "a name that it had is not new")
    #expect(try Self.take(&allowance, Self.name(64), "a", .at(4 * Self.second)) == nil)
    #expect(try Self.take(&allowance, Self.name(65), "a", .at(4 * Self.second)) == 4)
    // After a day it is.
    let tomorrow = MonotonicTime.at(86_401 * Self.second)
    for number in 100..<164 { #expect(try Self.take(&allowance, Self.name(number), "a", tomorrow) == nil) }
    #expect(try Self.take(&allowance, Self.name(5), "a", tomorrow) != nil)
  }

  @Test func aNameThatIsHeldForDaysStaysTheAddresses() throws {
    var allowance = NameAllowance(NameAllowance.Limits(streams: 1000, names: 1, namesPerMinute: 1))
    #expect(try Self.take(&allowance, Self.name(1), "a", 0) == nil)
    let week = MonotonicTime.at(7 * 86_400 * Self.second)
    allowance.keep(try Self.name(1), by: "a", now: week)
    allowance.keep(try Self.name(2), by: "a", now: week)
    #expect(try Self.take(&allowance, Self.name(2), "a", week) == nil)
    #expect(try Self.take(&allowance, Self.name(1), "a", week) == nil, "it takes no token")
    #expect(try Self.take(&allowance, Self.name(3), "a", week) != nil)
  }

  @Test func whatIsRememberedIsBounded() throws {
    var allowance = NameAllowance(NameAllowance.Limits(streams: 1000, names: 1000, namesPerMinute: 1000))
    for number in 0..<900 { #expect(try Self.take(&allowance, Self.name(number), "a", .at(Int64(number))) == nil) }
    for number in 0..<5000 { #expect(try Self.take(&allowance, Self.name(1), "\(number)", .at(Int64(number))) == nil) }
    #expect(Mirror(reflecting: allowance).descendant("addresses").map { "\($0)".count } ?? .max < 200_000)
  }

  @Test func `a change of the limits holds for addresses that were seen before`() throws {
    var allowance = NameAllowance(NameAllowance.Limits(streams: 1000, names: 4, namesPerMinute: 1))
    for number in 0..<4 { #expect(try Self.take(&allowance, Self.name(number), "a", 0) == nil) }
    #expect(try Self.take(&allowance, Self.name(4), "a", 0) == 60)
    allowance.limits.names = 6
    for number in 4..<6 { #expect(try Self.take(&allowance, Self.name(number), "a", 0) == nil) }
    #expect(try Self.take(&allowance, Self.name(6), "a", 0) == 60)
    allowance.limits.namesPerMinute = 30
    #expect(try Self.take(&allowance, Self.name(6), "a", 0) == 2)
  }
}
