@testable import HTTP
import NIOCore
import NIOHPACK
import Testing

/// What a client can have done cheaply, and what is not a flood.
@Suite struct HTTP2CostTests {
  private func section(_ path: String, method: String = "GET", _ more: [(String, String)] = []) throws -> [UInt8] {
    var headers = HPACKHeaders([(":method", method), (":scheme", "https")])
    headers.add(name: ":path", value: path, indexing: .nonIndexable)
    headers.add(name: ":authority", value: "localhost", indexing: .nonIndexable)
    for (name, value) in more { headers.add(name: name, value: value, indexing: .nonIndexable) }
    var (buffer, encoder) = (ByteBuffer(), HPACKEncoder(allocator: ByteBufferAllocator()))
    try encoder.encode(headers: headers, to: &buffer)
    return Array(buffer.readableBytesView)
  }

  private func begun() -> HTTP2Reading {
    var reading = HTTP2Reading()
    reading.receive(HTTP2Bytes.preface)
    return reading
  }

  @Test func `a table of short fields holds no more places than it can have fields, and as many again`() {
    var table = FieldTable()
    let name: [UInt8] = [0x61]
    for _ in 0..<5000 { table.add(name.span, [UInt8]().span) }
    #expect(table.count == 4096 / 33 && table.heldPlaces <= 2 * FieldTable.mostFields + 1)
    #expect(table.place(0)?.name == 1 && table.place(table.count) == nil)
  }

  @Test func `fields for a stream that was reset are read, but not for ever`() throws {
    var reading = begun()
    reading.receive(http2Frame(1, flags: 4, stream: 1, try section("/a", method: "POST")))
    reading.receive(http2Frame(8, stream: 1, [0, 0, 0, 0]))
    #expect(reading.faultyStreams == [1])
    let late = http2Frame(1, flags: 4, stream: 1, try section("/a"))
    // The frames of the beginning count, too.
    for _ in 0..<HTTP2Receiver.rate - 5 { reading.receive(late) }
    #expect(reading.fault == nil)
    for _ in 0..<6 { reading.receive(late) }
    #expect(reading.fault == .enhanceYourCalm)
  }

  @Test func `requests with too many fields end the connection at last`() throws {
    var reading = begun()
    let large = try section("/a", [("x", String(repeating: "y", count: HTTPLimits().headerFieldBytes + 1))])
    for number in 0..<HTTP2Receiver.rate {
      reading.receive(http2Frame(1, flags: 5, stream: UInt32(2 * number + 1), large))
    }
    #expect(reading.fault == nil && reading.events.contains { $0.hasSuffix("too large") })
    reading.receive(http2Frame(1, flags: 5, stream: UInt32(2 * HTTP2Receiver.rate + 1), large))
    #expect(reading.fault == .enhanceYourCalm)
  }

  @Test func `an empty frame now and then within a body is no flood`() throws {
    var reading = begun()
    reading.receive(http2Frame(1, flags: 4, stream: 1, try section("/a", method: "POST")))
    for _ in 0..<20 {
      reading.receive(http2Frame(0, stream: 1, []))
      reading.receive(http2Frame(0, stream: 1, [1, 2]))
    }
    #expect(reading.fault == nil)
    for _ in 0..<2 { reading.receive(http2Frame(0, stream: 1, [])) }
    #expect(reading.fault == .enhanceYourCalm)
  }

  /// Once decoded, and once by way of the last section.
  @Test(arguments: ["http://x/healthz", "x", "**", "/\u{E9}", "/a b"])
  func `a path that is no path is a fault of its stream`(path: String) throws {
    var reading = begun()
    reading.receive(http2Frame(1, flags: 5, stream: 1, try section(path)))
    reading.receive(http2Frame(1, flags: 5, stream: 3, try section("/good")))
    reading.receive(http2Frame(1, flags: 5, stream: 5, try section(path)))
    #expect(reading.faultyStreams == [1, 5] && reading.fault == nil)
  }
}
