@testable import Base
import NIOCore
import Testing

@Suite struct ProxyHeaderTests {
  private let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

  /// What a header comes to when its bytes come one by one, and how many are left of what follows.
  private func read(_ header: [UInt8]) throws -> (header: ProxyHeader, rest: Int) {
    var bytes = ByteBuffer()
    for byte in header + [3, 7] {
      bytes.writeInteger(byte)
      let found = try ProxyHeader.take(from: &bytes)
      if found != .incomplete { return (found, bytes.readableBytes) }
    }
    return (.incomplete, bytes.readableBytes)
  }

  @Test func bothVersionsTellTheAddress() throws {
    let four = ProxyHeader.from(try SocketAddress(ipAddress: "192.0.2.7", port: 4711))
    #expect(try read(Array("PROXY TCP4 192.0.2.7 192.0.2.1 4711 1935\r\n".utf8)) == (four, 0))
    #expect(
      try read(signature + [0x21, 0x11, 0, 12, 192, 0, 2, 7, 192, 0, 2, 1, 0x12, 0x67, 0x07, 0x8F]) == (four, 0))
    // With a TLV behind the addresses (§2.2).
    #expect(
      try read(signature + [0x21, 0x11, 0, 16, 192, 0, 2, 7, 192, 0, 2, 1, 0x12, 0x67, 7, 0x8F, 4, 0, 1, 0]) == (
        four, 0
      ))
    let six = ProxyHeader.from(try SocketAddress(ipAddress: "2001:db8::7", port: 258))
    let address: [UInt8] = [0x20, 1, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [7]
    #expect(try read(signature + [0x21, 0x21, 0, 36] + address + address + [1, 2, 3, 4]) == (six, 0))
    #expect(try read(Array("PROXY TCP6 2001:db8::7 ::1 258 1935\r\n".utf8)) == (six, 0))
  }

  @Test func aProxysOwnConnectionHasNoAddress() throws {
    #expect(try read(Array("PROXY UNKNOWN\r\n".utf8)) == (.from(nil), 0))
    #expect(try read(signature + [0x20, 0, 0, 0]) == (.from(nil), 0))
    #expect(try read(signature + [0x21, 0x31, 0, 2, 1, 1]) == (.from(nil), 0))
    #expect(try read([3, 0, 0]) == (.absent, 1))
  }

  @Test(arguments: [
    "PROXY TCP4 192.0.2.7 192.0.2.1 4711\r\n", "PROXY TCP4 x y 1 2\r\n", "PROXY TCP4 192.0.2.7 192.0.2.1 99999 1\r\n",
    "PUT / HTTP/1.1\r\n", "PROXY TCP4 192.0.2.7 192.0.2.1 4711 1935\n", "P" + String(repeating: "x", count: 200),
    "\r\n\r\nGET / HTTP/1.1",
  ])
  func whatIsNoHeaderIsRefused(_ text: String) {
    #expect(throws: ProxyHeader.Malformed.self) { try read(Array(text.utf8)) }
  }

  @Test(arguments: [
    [0x11, 0x11, 0, 12], [0x22, 0x11, 0, 12], [0x21, 0x11, 0xFF, 0xFF],
    [0x21, 0x11, 0, 4, 1, 2, 3, 4] as [UInt8], [0x21, 0x21, 0, 12] + [UInt8](repeating: 1, count: 12),
  ])
  func aBinaryHeaderThatCannotBeIsRefused(_ tail: [UInt8]) {
    #expect(throws: ProxyHeader.Malformed.self) { try read(signature + tail) }
  }
}
