@testable import HTTP
import NIOCore
import NIOHPACK
import Testing

/// Requests that follow each other on a connection, against the same requests on connections of their own.
@Suite struct HTTP2LastSectionTests {
  private static let agent = [("user-agent", "player"), ("accept-encoding", "gzip")]

  private struct Request {
    var path: String
    var more: [(String, String)] = HTTP2LastSectionTests.agent
    var method = "GET"
    var isEnd = true

    func section(_ encoder: inout HPACKEncoder) throws -> [UInt8] {
      var headers = HPACKHeaders([(":method", method), (":scheme", "https")])
      headers.add(name: ":path", value: path, indexing: .nonIndexable)
      headers.add(name: ":authority", value: "localhost")
      for (name, value) in more { headers.add(name: name, value: value) }
      var buffer = ByteBuffer()
      try encoder.encode(headers: headers, to: &buffer)
      return Array(buffer.readableBytesView)
    }
  }

  /// The events of all requests on one connection, and of each on its own.
  private func expectAlike(
    _ requests: [Request], limits: HTTPLimits = HTTPLimits(), huffman: Bool = true
  ) throws -> [String] {
    var encoder = HPACKEncoder(allocator: ByteBufferAllocator(), useHuffmanEncoding: huffman)
    var together = HTTP2Reading(limits: limits)
    together.receive(HTTP2Bytes.preface)
    var expected: [String] = []
    for (number, request) in requests.enumerated() {
      let flags: UInt8 = request.isEnd ? 5 : 4
      together.receive(
        http2Frame(1, flags: flags, stream: UInt32(2 * number + 1), try request.section(&encoder)))
      var fresh = HPACKEncoder(allocator: ByteBufferAllocator(), useHuffmanEncoding: huffman)
      var alone = HTTP2Reading(limits: limits)
      alone.receive(HTTP2Bytes.preface)
      alone.receive(http2Frame(1, flags: flags, stream: UInt32(2 * number + 1), try request.section(&fresh)))
      #expect(alone.fault == nil)
      expected += alone.events.dropFirst()
    }
    #expect(together.fault == nil)
    #expect(Array(together.events.dropFirst()) == expected)
    return expected
  }

  @Test(arguments: [false, true]) func `each head is what its own fields say`(huffman: Bool) throws {
    let requests = [
      Request(path: "/live/cam/1.m4s"), Request(path: "/live/cam/2.m4s"), Request(path: "/live/cam/2.m4s"),
      Request(path: "/~abc/live/cam/3.m4s?a=b"), Request(path: "/~abd/live/cam/3.m4s?a=b"),
      Request(path: "/live/cam/4.m4s"),
      Request(path: "/live/cam/4.m4s", more: [("user-agent", "plaver"), ("accept-encoding", "gzip")]),
      Request(path: "/live/cam/4.m4s", more: [("accept-encoding", "gzip"), ("user-agent", "player")]),
      Request(path: "/live/cam/4.m4s", more: [("user-agent", "player")]),
      Request(path: "/live/cam/4.m4s", more: Self.agent + [("range", "bytes=0-1")]),
      Request(path: "/live/cam/4.m4s"), Request(path: "/live/cam/4.m4s", method: "HEAD"),
      Request(path: "/"), Request(path: "/"), Request(path: "/live/cam/4.m4s"),
      Request(path: "/live/cam/ingest", method: "POST", isEnd: false),
      Request(path: "/live/cam/ingest", method: "POST"), Request(path: "/live/cam/5.m4s"),
      Request(path: "/live/ cam"), Request(path: "/live/cam/6.m4s"), Request(path: "/live/cam/7.m4s"),
      Request(path: ""), Request(path: "/live/cam/8.m4s"),
    ]
    let events = try expectAlike(requests, huffman: huffman)
    #expect(events.filter { $0.hasPrefix("fault") }.count == 2)
  }

  /// The path counts for the sum of all fields, also where the others are known.
  @Test func `a path that is too long is refused where the fields before it were good`() throws {
    var limits = HTTPLimits()
    limits.headerBytes = 400
    limits.streams = 1000
    let lengths = [10, 500, 20] + Array(300...340)
    let events = try expectAlike(lengths.map { Request(path: "/" + String(repeating: "x", count: $0)) }, limits: limits)
    let refused = events.filter { $0.hasSuffix("too large") }.count
    #expect(refused > 5 && refused < lengths.count - 5, "\(refused) of \(lengths.count)")
  }

  /// The table changes by a request between two that are equal, and the same bytes then name other fields.
  @Test func `bytes that name other fields by now are read again`() throws {
    var reading = HTTP2Reading()
    reading.receive(HTTP2Bytes.preface)
    let added = { (value: UInt8) in [0x82, 0x87, 0x84, 0x41, 1, 0x68, 0x40, 1, 0x78, 1, value] as [UInt8] }
    // The newest two fields of the table.
    let named: [UInt8] = [0x82, 0x87, 0x84, 0x01, 1, 0x68, 0xBE]
    for (number, section) in [added(0x31), named, named, added(0x32), named].enumerated() {
      reading.receive(http2Frame(1, flags: 5, stream: UInt32(2 * number + 1), section))
    }
    #expect(reading.events.dropFirst().map { $0.suffix(4) } == ["x: 1", "x: 1", "x: 1", "x: 2", "x: 2"])
  }
}
