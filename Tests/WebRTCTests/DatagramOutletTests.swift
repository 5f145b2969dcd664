import Glibc
import NIOCore
import NIOEmbedded
import Testing
@testable import WebRTC

/// Packets on their way out of a UDP socket, one by one and several at a time.
@Suite struct DatagramOutletTests {
  /// A socket of loopback, closed with its last reference.
  private final class Socket {
    let descriptor: CInt
    let address: SocketAddress

    init() throws {
      let made = socket(AF_INET, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
      let any = try SocketAddress(ipAddress: "127.0.0.1", port: 0)
      let bound = any.withSockAddr { Glibc.bind(made, $0, socklen_t($1)) }
      // Family, port, address, padding.
      var (name, size) = ([UInt8](repeating: 0, count: 16), socklen_t(16))
      let code = name.withUnsafeMutableBytes {
        getsockname(made, $0.baseAddress?.assumingMemoryBound(to: sockaddr.self), &size)
      }
      try #require(bound == 0 && code == 0)
      descriptor = made
      address = try SocketAddress(ipAddress: "127.0.0.1", port: Int(name[2]) << 8 | Int(name[3]))
    }

    deinit { close(descriptor) }

    /// The datagrams that have come.
    var received: [[UInt8]] {
      var (all, room) = ([[UInt8]](), [UInt8](repeating: 0, count: 65_536))
      while true {
        let count = recv(descriptor, &room, room.count, CInt(MSG_DONTWAIT))
        guard count >= 0 else { return all }
        all.append(Array(room.prefix(count)))
      }
    }
  }

  private static func packet(_ number: Int, _ size: Int) -> [UInt8] {
    [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: size)
  }

  @Test func `Packets of one size go out together, and come one by one`() throws {
    let (here, there) = (try Socket(), try Socket())
    let outlet = DatagramOutlet(here.descriptor)
    let packets = (0..<DatagramOutlet.mostPackets).map {
      Self.packet($0, $0 == DatagramOutlet.mostPackets - 1 ? 40 : 990)
    }
    packets.flatMap { $0 }.withUnsafeBytes { outlet.send($0, of: 990, every: 990, to: there.address) }
    #expect(there.received == packets)
    // With room between them, which is not sent.
    var spaced: [UInt8] = []
    for packet in packets { spaced += packet + [1, 2, 3] }
    spaced.removeLast(3)
    spaced.withUnsafeBytes { outlet.send($0, of: 990, every: 993, to: there.address) }
    #expect(there.received == packets && outlet.takesSeveral)
    outlet.send(ByteBuffer(bytes: packets[3]), to: there.address)
    #expect(there.received == [packets[3]])
    outlet.close()
    outlet.send(ByteBuffer(bytes: packets[3]), to: there.address)
    #expect(there.received.isEmpty, "its descriptor may be somebody else's")
  }

  @Test func `What the system refuses concerns nothing else`() throws {
    let (here, there) = (try Socket(), try Socket())
    let outlet = DatagramOutlet(here.descriptor)
    let packets = [UInt8](repeating: 7, count: 200)
    // No port; an address that is none; more than fits one packet of the interface.
    for address in [
      try SocketAddress(ipAddress: "127.0.0.1", port: 0), try SocketAddress(ipAddress: "240.0.0.1", port: 9),
    ] {
      packets.withUnsafeBytes { outlet.send($0, of: 100, every: 100, to: address) }
      outlet.send(ByteBuffer(bytes: packets), to: address)
    }
    [UInt8](repeating: 7, count: 140_000).withUnsafeBytes {
      outlet.send($0, of: 70_000, every: 70_000, to: there.address)
    }
    packets.withUnsafeBytes { outlet.send($0, of: 100, every: 100, to: there.address) }
    #expect(there.received == [Self.packet(7, 100), Self.packet(7, 100)] && outlet.takesSeveral)
  }

  @Test(arguments: [
    [100, 100, 40, 100, 300, 300, 300, 20, 20], [1], [50, 60, 70, 60], [Int](repeating: 1200, count: 150), [9, 0, 9],
  ])
  func `Whatever their sizes, packets come as they were added, in order`(_ sizes: [Int]) throws {
    let (here, there) = (try Socket(), try Socket())
    let path = try #require(
      WebRTCPath(there.address, isDatagram: true, EmbeddedChannel(), DatagramOutlet(here.descriptor)))
    let batch = PacketBatch()
    var room = CInt(1 << 20)
    setsockopt(there.descriptor, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<CInt>.size))
    for (number, size) in sizes.enumerated() {
      batch.add(to: path) { buffer in
        // One that cannot be encrypted adds nothing.
        guard size > 0 else { return false }
        buffer.writeBytes(Self.packet(number, size))
        return true
      }
    }
    batch.flush(path)
    batch.flush(path)
    #expect(there.received == sizes.enumerated().filter { $0.element > 0 }.map { Self.packet($0.offset, $0.element) })
  }

  @Test func `Each packet begins at an address that libsrtp can read as words, whatever went before it`() throws {
    let (here, there) = (try Socket(), try Socket())
    let path = try #require(
      WebRTCPath(there.address, isDatagram: true, EmbeddedChannel(), DatagramOutlet(here.descriptor)))
    let batch = PacketBatch()
    var places: [UInt] = []
    // A larger one, one that adds nothing, and a shorter one that ends the batch are among them.
    let sizes = [1001, 1001, 1001, 1003, 0, 1003, 17, 999, 999, 998]
    for size in sizes {
      batch.add(to: path) { buffer in
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: 1100) { target in
          places.append(UInt(bitPattern: target.baseAddress) % UInt(PacketBatch.alignment))
          target.initializeMemory(as: UInt8.self, repeating: UInt8(size % 251))
          return size
        }
        return size > 0
      }
    }
    batch.flush(path)
    #expect(places == [UInt](repeating: 0, count: sizes.count))
    #expect(there.received == sizes.filter { $0 > 0 }.map { [UInt8](repeating: UInt8($0 % 251), count: $0) })
  }
}
