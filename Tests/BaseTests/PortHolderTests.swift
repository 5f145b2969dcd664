@testable import Base
import Glibc
import NIOCore
import NIOPosix
import Testing

@Suite struct PortHolderTests {
  @Test func theProgramThatListensIsNamed() async throws {
    for host in ["127.0.0.1", "::1"] {
      let channel = try await ServerBootstrap(group: NIOSingletons.posixEventLoopGroup).bind(host: host, port: 0).get()
      let port = try #require(channel.localAddress?.port.flatMap { UInt16(exactly: $0) })
      let holder = try #require(PortHolder.of(port, .tcp))
      #expect(holder.process == getpid())
      #expect(holder.description == "pid \(getpid()) (\(holder.name))" && !holder.name.isEmpty)
      #expect(PortHolder.isTaken(port, .tcp) && !PortHolder.isTaken(port, .udp))
      try await channel.close().get()
      #expect(PortHolder.of(port, .tcp) == nil)
    }
  }

  @Test func aUDPPortIsOfTheProgramThatBoundIt() async throws {
    let channel = try await DatagramBootstrap(group: NIOSingletons.posixEventLoopGroup).bind(host: "0.0.0.0", port: 0)
      .get()
    let port = try #require(channel.localAddress?.port.flatMap { UInt16(exactly: $0) })
    #expect(PortHolder.of(port, .udp)?.process == getpid())
    #expect(PortHolder.of(port, .tcp) == nil)
    try await channel.close().get()
  }

  @Test func aProgramOfAnotherUserIsNamedByItsUser() {
    #expect(PortHolder(process: nil, name: "www-data").description == "a program of user www-data")
  }
}
