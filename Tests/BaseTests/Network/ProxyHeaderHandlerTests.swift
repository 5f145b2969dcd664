import Base
import NIOCore
import NIOEmbedded
import Testing

@Suite("A proxy's header before a connection")
struct ProxyHeaderHandlerTests {
  private struct Unwanted: Error {}

  /// A connection from a proxy, and whose it turned out to be.
  private final class Connection {
    let channel = EmbeddedChannel()
    var told: [SocketAddress?] = []

    init(refusing: Bool = false) throws {
      try channel.connect(to: SocketAddress(ipAddress: "192.0.2.1", port: 1935)).wait()
      let handler = ProxyHeaderHandler(patience: .seconds(4)) { [unowned self] _, address in
        if refusing { throw Unwanted() }
        told.append(address)
      }
      try channel.pipeline.syncOperations.addHandler(handler)
    }

    func send(_ bytes: [UInt8]) throws { try channel.writeInbound(ByteBuffer(bytes: bytes)) }

    /// What came through by now.
    func received() throws -> [UInt8] {
      var bytes: [UInt8] = []
      while let buffer = try channel.readInbound(as: ByteBuffer.self) { bytes += buffer.readableBytesView }
      return bytes
    }

    func pass(seconds: Int64) { channel.embeddedEventLoop.advanceTime(by: .seconds(seconds)) }
  }

  private let header = Array("PROXY TCP4 192.0.2.7 192.0.2.1 4711 1935\r\n".utf8)

  @Test func `The address is told once and what follows the header passes on`() throws {
    let connection = try Connection()
    try connection.send(header + [3, 1, 2])
    try connection.send([4, 5])
    let address = try SocketAddress(ipAddress: "192.0.2.7", port: 4711)
    #expect(connection.told == [address])
    #expect(try connection.received() == [3, 1, 2, 4, 5])
  }

  @Test func `A header that comes byte by byte is waited for`() throws {
    let connection = try Connection()
    for byte in header.dropLast() { try connection.send([byte]) }
    #expect(connection.told.isEmpty)
    try connection.send([0x0A])
    #expect(connection.told.count == 1)
    #expect(try connection.received() == [], "the header is not passed on")
    try connection.send([3])
    #expect(try connection.received() == [3])
  }

  @Test func `Without a header the connection is the proxy's own`() throws {
    let connection = try Connection()
    try connection.send([3, 9])
    #expect(connection.told == [nil])
    #expect(try connection.received() == [3, 9])
  }

  @Test func `A header that is none closes the connection`() throws {
    let connection = try Connection()
    try connection.send(Array("PROXY nonsense\r\n".utf8))
    #expect(!connection.channel.isActive && connection.told.isEmpty)
    #expect(try connection.received() == [])
  }

  @Test func `A connection that is not wanted is closed`() throws {
    let connection = try Connection(refusing: true)
    try connection.send(header + [3])
    #expect(!connection.channel.isActive)
    #expect(try connection.received() == [])
  }

  @Test func `Patience ends, and only where no header has come`() throws {
    let silent = try Connection()
    try silent.send(Array(header.prefix(10)))
    silent.pass(seconds: 3)
    #expect(silent.channel.isActive)
    silent.pass(seconds: 1)
    #expect(!silent.channel.isActive)
    let quick = try Connection()
    try quick.send(header)
    quick.pass(seconds: 60)
    #expect(quick.channel.isActive)
  }

  @Test func `A connection that is closed leaves no timer behind`() throws {
    let connection = try Connection()
    connection.channel.pipeline.fireChannelInactive()
    connection.pass(seconds: 60)
    #expect(connection.told.isEmpty)
    #expect(connection.channel.isActive, "nothing closed it a second time")
  }
}
