import Base
import NIOCore
import Testing

@Suite struct NetworkAddressTests {
  private func address(_ text: String) throws -> NetworkAddress { try #require(NetworkAddress(parsing: text)) }

  @Test func oneAddressHasOneForm() throws {
    let four = try address("192.0.2.7")
    #expect(try address("::ffff:192.0.2.7") == four)
    #expect(try address("192.0.2.7:4711") == four)
    #expect(NetworkAddress(try SocketAddress(ipAddress: "192.0.2.7", port: 80)) == four)
    #expect(try address("[2001:db8::1]:80") == address("2001:db8::1"))
    #expect(four.hostText == "192.0.2.7" && four.host == four)
    #expect(try address("2001:db8:1:2:3::4").hostText == "2001:db8:1:2::/64")
    #expect(try address("2001:db8:1:2:3::4").host == address("2001:db8:1:2::9").host)
  }

  @Test(arguments: ["", "x", "unknown", "_hidden", "1.2.3", "1.2.3.4.5", "[::1", "::1]", "1.2.3.4:x:y"])
  func whatIsNoAddressIsNone(_ text: String) {
    #expect(NetworkAddress(parsing: text) == nil)
  }

  @Test(arguments: [
    ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false), ("10.0.0.7", "10.0.0.7", true),
    ("10.0.0.7", "10.0.0.6", false), ("0.0.0.0/0", "8.8.8.8", true), ("0.0.0.0/0", "2001:db8::1", false),
    ("2001:db8::/32", "2001:db8:ffff::1", true), ("2001:db8::/32", "2001:db9::1", false),
    ("::1", "::1", true), ("10.0.0.0/8", "::ffff:10.1.1.1", true), ("2001:db8::/65", "2001:db8::8000:0:0:1", false),
  ])
  func aRangeIsWhatBeginsAlike(_ range: String, _ text: String, _ isIn: Bool) throws {
    #expect(try #require(AddressRange(parsing: range)).contains(address(text)) == isIn)
  }

  @Test(arguments: ["10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8/8", "x/8", "::/129", "[::1]/64"])
  func whatIsNoRangeIsNone(_ text: String) {
    #expect(AddressRange(parsing: text) == nil)
  }

  /// The last address that is no proxy. What stands before it any client may have written.
  @Test(arguments: [
    (["203.0.113.9"], "203.0.113.9"), (["6.6.6.6, 203.0.113.9"], "203.0.113.9"),
    (["203.0.113.9, 10.0.0.5"], "203.0.113.9"), (["6.6.6.6", "203.0.113.9,10.0.0.5"], "203.0.113.9"),
    (["10.0.0.5"], "10.0.0.5"), ([], "10.0.0.1"), (["unknown"], "10.0.0.1"), (["203.0.113.9, garbage"], "10.0.0.1"),
    (["203.0.113.9:4711"], "203.0.113.9"), (["\"[2001:db8::1]\""], "10.0.0.1"), ([" 203.0.113.9 "], "203.0.113.9"),
    ([String(repeating: "10.0.0.5,", count: 100) + "10.0.0.6"], "10.0.0.5"),
  ])
  func theClientIsTheLastThatIsNoProxy(_ told: [String], _ client: String) throws {
    let proxies = TrustedProxies([try #require(AddressRange(parsing: "10.0.0.0/8"))])
    #expect(proxies.client(behind: try address("10.0.0.1"), told: told) == (try address(client)))
  }
}
