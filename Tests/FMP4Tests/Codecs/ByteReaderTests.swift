@testable import FMP4
import NIOCore
import Testing

@Suite("Reading the bytes of a record")
struct ByteReaderTests {
  @Test func `Numbers are big-endian and the place is known`() throws {
    var reader = try ByteReader(ByteBuffer(bytes: [1, 2, 3, 4, 5, 6, 7, 8, 9]), name: "test")
    #expect(try reader.u8() == 1)
    #expect(try reader.u16() == 0x0203)
    #expect(try reader.u32() == 0x0405_0607)
    #expect(reader.offset == 7 && reader.remaining == 2)
    #expect(try reader.bytes(2) == [8, 9])
    #expect(try reader.bytes(0) == [])
    #expect(reader.offset == 9 && reader.remaining == 0)
  }

  @Test func `A field that is cut short throws where the record ends, and takes nothing`() throws {
    for length in 0..<4 {
      var reader = try ByteReader(ByteBuffer(bytes: [7] + [UInt8](repeating: 0, count: length)), name: "avcC")
      _ = try reader.u8()
      let ended = CodecError(.truncated, "avcC ends after \(length + 1) bytes, within a field", offset: 1)
      #expect(throws: ended) { try reader.u32() }
      #expect(throws: ended) { try reader.bytes(length + 1) }
      #expect(reader.remaining == length)
    }
  }

  @Test func `A buffer that was read from begins where its reader stands`() throws {
    var buffer = ByteBuffer(bytes: [0xEE, 0xEE, 1, 2])
    buffer.moveReaderIndex(forwardBy: 2)
    var reader = try ByteReader(buffer, name: "test")
    #expect(reader.offset == 0)
    #expect(try reader.u16() == 0x0102)
  }

  @Test func `A record of 65536 bytes is read and a longer one refused`() throws {
    #expect(try ByteReader(ByteBuffer(repeating: 0, count: 65_536), name: "hvcC").remaining == 65_536)
    #expect(throws: CodecError(.invalid, "hvcC has 65537 bytes, at most 65536 are read")) {
      _ = try ByteReader(ByteBuffer(repeating: 0, count: 65_537), name: "hvcC")
    }
  }
}
