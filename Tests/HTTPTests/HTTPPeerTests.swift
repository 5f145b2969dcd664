@testable import HTTP
import NIOCore
import Testing

@Suite struct HTTPPeerTests {
  private func host(_ address: String) throws -> String {
    HTTPPeer.host(of: try SocketAddress(ipAddress: address, port: 5))
  }

  @Test func anIPv6AddressCountsWithItsNetwork() throws {
    #expect(try host("2001:db8:0:1::1") == host("2001:db8:0:1:ffff::2"))
    #expect(try host("2001:db8:0:1::1") != host("2001:db8:0:2::1"))
    #expect(try host("::ffff:192.0.2.1") == host("192.0.2.1"))
    #expect(try host("192.0.2.1") != host("192.0.2.2"))
    #expect(HTTPPeer.host(of: nil) == "")
    #expect(HTTPPeer.host(of: try SocketAddress(unixDomainSocketPath: "/tmp/x")) == "")
  }
}
