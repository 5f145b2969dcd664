import Base
import Glibc
import NIOCore
@testable import SRT
import Synchronization
import Testing

/// Sockets that workers are given.
@Suite struct UDPSocketTests {
  @Test(arguments: ["127.0.0.1", "0.0.0.0"]) func `A socket is bound where it was asked for`(host: String) throws {
    let udp = try UDPSocket.bind(try SocketAddress(ipAddress: host, port: 0))
    defer { close(udp) }
    let address = try UDPSocket.address(of: udp)
    #expect(address.ipAddress == host && address.port ?? 0 > 0)
    #expect(fcntl(udp, F_GETFD) & FD_CLOEXEC != 0, "no other process inherits it")
  }

  /// This thread has a table of descriptors of its own from now on (`unshare(CLONE_FILES)`; the overlay of glibc lacks it).
  private static func takeOwnDescriptors() -> Bool {
    let unshare = dlsym(nil, "unshare").map { unsafeBitCast($0, to: (@convention(c) (Int32) -> Int32).self) }
    return unshare?(0x400) == 0
  }

  /// On a thread that others open nothing in.
  @Test func `A port that is taken is told, and its socket closed`() async throws {
    let udp = try UDPSocket.bind(try SocketAddress(ipAddress: "127.0.0.1", port: 0))
    defer { close(udp) }
    let address = try UDPSocket.address(of: udp)
    let found = Mutex<(isAlone: Bool, codes: [Int32?], lowest: [Int32])>((false, [], []))
    try await DedicatedThread.run(named: "taken-port") {
      let isAlone = Self.takeOwnDescriptors()
      /// The lowest descriptor that is free.
      func lowest() -> Int32 {
        let next = dup(udp)
        close(next)
        return next
      }
      let before = lowest()
      let codes = (0..<50).map { _ -> Int32? in
        do {
          close(try UDPSocket.bind(address))
          return nil
        } catch {
          return (error as? IOError)?.errnoCode
        }
      }
      found.withLock { $0 = (isAlone, codes, [before, lowest()]) }
    }
    let (isAlone, codes, lowest) = found.withLock { $0 }
    #expect(isAlone && codes == Array(repeating: EADDRINUSE, count: 50))
    #expect(lowest[0] > 0 && lowest[0] == lowest[1], "none of fifty sockets is left")
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
