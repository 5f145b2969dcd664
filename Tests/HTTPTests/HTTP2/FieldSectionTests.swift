@testable import HTTP
import NIOCore
import NIOHPACK
import Support
import Testing

/// Field sections of HTTP/2 (RFC 7541), held against NIO's encoder and decoder.
@Suite struct FieldSectionTests {
  private struct Fields: FieldSectionReader.Taker, Equatable {
    var fields: [String] = []
    mutating func take(_ name: Span<UInt8>, _ value: Span<UInt8>) {
      fields.append("\(Array(copying: name)) \(Array(copying: value))")
    }
    mutating func pathStood(at range: Range<Int>) {}
  }

  private static func lines(_ fields: HPACKHeaders) -> [String] {
    fields.map { "\(Array($0.name.utf8)) \(Array($0.value.utf8))" }
  }

  private static func read(_ section: ByteBuffer, _ reader: inout FieldSectionReader) -> [String]? {
    var fields = Fields()
    do {
      try reader.read(section, into: &fields)
      return fields.fields
    } catch {
      return nil
    }
  }

  /// Fields of which some repeat, so that tables fill, are used, and lose their oldest.
  private struct Maker {
    var generator: RequestMaker.Generator
    static let names = [":path", ":authority", "user-agent", "cookie", "range", "x-a", "x-some-longer-name", "accept"]

    mutating func pick(_ count: Int) -> Int { Int(generator.next() % UInt64(count)) }

    mutating func text() -> String {
      switch pick(4) {
      case 0: "value-\(pick(20))"
      case 1: String(repeating: "abc/?&=%", count: pick(60))
      case 2: String(decoding: (0..<pick(30)).map { _ in UInt8(truncatingIfNeeded: pick(127) + 1) }, as: UTF8.self)
      default: ["gzip, deflate, br", "*/*", "", "bytes=0-1023", "/live/cam/1/av/12.3.m4s"][pick(5)]
      }
    }

    mutating func fields() -> HPACKHeaders {
      var headers = HPACKHeaders()
      for _ in 0..<1 + pick(12) {
        let name = pick(10) == 0 ? "x-\(pick(400))" : Self.names[pick(Self.names.count)]
        headers.add(name: name, value: text(), indexing: [.indexable, .nonIndexable, .neverIndexed][pick(3)])
      }
      return headers
    }
  }

  @Test(arguments: 0..<8) func `sections of NIO's encoder are read as they were written`(seed: UInt64) throws {
    var maker = Maker(generator: .init(state: seed))
    var encoder = HPACKEncoder(allocator: ByteBufferAllocator(), useHuffmanEncoding: seed % 2 == 0)
    var reader = FieldSectionReader(largest: 1 << 20)
    for round in 0..<120 {
      let fields = maker.fields()
      if round % 40 == 39 { try encoder.setDynamicTableSize([0, 100, 4096, 1000][maker.pick(4)]) }
      var buffer = ByteBuffer(bytes: [1, 2, 3])
      buffer.moveReaderIndex(forwardBy: 3)
      try encoder.encode(headers: fields, to: &buffer)
      try #require(Self.read(buffer, &reader) == Self.lines(fields), "section \(round)")
    }
    #expect(reader.table.bytes.count <= 3 * FieldTable.largest)
  }

  /// Bytes that are wrong somewhere: nothing is read that NIO's decoder refuses. It refuses nothing that NIO's reads but numbers
  /// of more than five bytes, which no client needs.
  @Test(arguments: 0..<(isLong ? 8 : 4))
  func `damaged sections are read as NIO's decoder reads them`(seed: UInt64) throws {
    var maker = Maker(generator: .init(state: seed &+ 100))
    var refused = 0
    for _ in 0..<100 {
      var encoder = HPACKEncoder(allocator: ByteBufferAllocator())
      var reader = FieldSectionReader(largest: 16_384)
      var decoder = HPACKDecoder(allocator: ByteBufferAllocator(), maxDynamicTableSize: 4096, maxHeaderListSize: 16_384)
      for _ in 0..<4 {
        var buffer = ByteBuffer()
        try encoder.encode(headers: maker.fields(), to: &buffer)
        for _ in 0..<maker.pick(3) {
          buffer.setInteger(
            UInt8(truncatingIfNeeded: maker.generator.next()),
            at: buffer.readerIndex + maker.pick(buffer.readableBytes))
        }
        var copy = buffer
        let expected = try? decoder.decodeHeaders(from: &copy)
        let found = Self.read(buffer, &reader)
        // NIO repairs what is not UTF-8.
        if let expected, !Self.lines(expected).joined().contains("239, 191, 189") {
          try #require(found == Self.lines(expected), "\(Array(buffer.readableBytesView))")
        } else if expected == nil {
          try #require(found == nil, "\(Array(buffer.readableBytesView))")
        }
        if found == nil || expected == nil {
          refused += 1
          break
        }
      }
    }
    #expect((10..<90).contains(refused), "some are good, some are not: \(refused)")
  }

  @Test func `each byte has its code, and no other end is taken`() throws {
    for symbol in 0...255 as ClosedRange<UInt8> where symbol < 128 {
      var encoder = HPACKEncoder(allocator: ByteBufferAllocator())
      let fields = HPACKHeaders([("x", String(repeating: Character(UnicodeScalar(symbol)), count: 3) + "0")])
      var buffer = ByteBuffer()
      try encoder.encode(headers: fields, to: &buffer)
      var reader = FieldSectionReader(largest: 1000)
      #expect(Self.read(buffer, &reader) == Self.lines(fields), "byte \(symbol)")
    }
    // Of the shortest symbol's code, what is left of a byte must be ones, and less than a byte.
    let ends: [([UInt8], Bool)] = [
      ([0b0000_0111], true), ([0b0000_0110], false), ([0b0000_0111, 0xFF], false), ([0xFF], false), ([], true),
      ([0xFF, 0xFF, 0xFF, 0xFF], false),
    ]
    for (bytes, isRight) in ends {
      var text = ByteBuffer()
      #expect(HuffmanCode.standard.decode(bytes.span, into: &text) == isRight, "\(bytes)")
    }
  }

  @Test func `a section of a response is what NIO reads, and needs no table`() throws {
    for status in [100, 200, 204, 206, 304, 400, 404, 429, 500, 503] {
      let fields = [
        ("date", HTTPDate(second: 5).text), ("content-type", "video/mp4"), ("x-y", String(repeating: "z", count: 300)),
        ("etag", "\"1\""), ("www-authenticate", ""),
      ]
      var writer = FieldSectionWriter(status: status)
      for (name, value) in fields { writer.add(name, value) }
      var decoder = HPACKDecoder(allocator: ByteBufferAllocator(), maxDynamicTableSize: 0)
      var bytes = writer.bytes
      let read = try decoder.decodeHeaders(from: &bytes)
      #expect(read.map { "\($0.name): \($0.value)" } == [":status: \(status)"] + fields.map { "\($0.0): \($0.1)" })
    }
  }

  @Test func `a list that is larger than allowed is refused, whatever it is made of`() {
    var reader = FieldSectionReader(largest: 1000)
    // One field of 500 bytes that is kept, and references to it.
    var section = ByteBuffer(bytes: [0x40, 1, 0x78, 0x7F, 0xF5, 0x02])
    section.writeRepeatingByte(0x79, count: 500)
    #expect(Self.read(section, &reader) != nil)
    #expect(Self.read(ByteBuffer(bytes: [0xBE]), &reader)?.count == 1)
    #expect(Self.read(ByteBuffer(bytes: [0xBE, 0xBE]), &reader) == nil)
  }
}

extension [UInt8] {
  fileprivate init(copying bytes: Span<UInt8>) {
    self = []
    for index in bytes.indices { append(bytes[index]) }
  }
}
