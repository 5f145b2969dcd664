import Glibc
import NIOCore
import Testing

@testable import Ingest

/// Sockets that workers are given.
@Suite struct UDPSocketTests {
  @Test(arguments: ["127.0.0.1", "0.0.0.0"]) func `A socket is bound where it was asked for`(host: String) throws {
    let udp = try UDPSocket.bind(try SocketAddress(ipAddress: host, port: 0))
    defer { close(udp) }
    let address = try UDPSocket.address(of: udp)
    #expect(address.ipAddress == host && address.port ?? 0 > 0)
    #expect(fcntl(udp, F_GETFD) & FD_CLOEXEC != 0, "no other process inherits it")
  }

  @Test func `A port that is taken is told, and its socket closed`() throws {
    let udp = try UDPSocket.bind(try SocketAddress(ipAddress: "127.0.0.1", port: 0))
    defer { close(udp) }
    let address = try UDPSocket.address(of: udp)
    for _ in 0..<50 {
      do {
        close(try UDPSocket.bind(address))
        Issue.record("it was bound twice")
      } catch {
        #expect((error as? IOError)?.errnoCode == EADDRINUSE)
      }
    }
    // The lowest free descriptor would have moved by fifty.
    let next = dup(udp)
    #expect(next - udp < 50)
    close(next)
  }

  @Test func `A socket of IPv6 takes IPv4, too`() throws {
    guard let any = try? SocketAddress(ipAddress: "::", port: 0), let udp = try? UDPSocket.bind(any) else {
      return withKnownIssue("this machine has no IPv6") { Issue.record("no socket") }
    }
    defer { close(udp) }
    let port = try #require(try UDPSocket.address(of: udp).port)
    let sender = try UDPSocket.bind(try SocketAddress(ipAddress: "127.0.0.1", port: 0))
    defer { close(sender) }
    let target = try SocketAddress(ipAddress: "127.0.0.1", port: port)
    let sent = target.withSockAddr { sendto(sender, [7], 1, 0, $0, socklen_t($1)) }
    var byte: UInt8 = 0
    #expect(sent == 1 && recv(udp, &byte, 1, 0) == 1 && byte == 7)
  }

  @Test func `What is no socket has no address`() {
    #expect(throws: IOError.self) { try UDPSocket.address(of: -1) }
  }
}
