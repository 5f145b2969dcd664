import NIOCore
@testable import RTMP
import Testing

@Suite("Messages cut into chunks")
struct ChunkWriterTests {
  private func written(_ write: (inout ByteBuffer) -> Void) -> [UInt8] {
    var out = ByteBuffer()
    write(&out)
    return Array(out.readableBytesView)
  }

  private func payload(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0) } }

  /// A message of type 20 on chunk stream 3 and message stream 0x010203.
  private func message(_ count: Int, by writer: ChunkWriter = ChunkWriter()) -> [UInt8] {
    written {
      writer.write(
        type: 20, chunkStream: 3, messageStream: 0x01_0203, payload: ByteBuffer(bytes: payload(count)), to: &$0)
    }
  }

  /// RTMP 5.3.1.2.1: timestamp and length in three bytes, type, message stream in four, little-endian.
  private func header(_ count: Int) -> [UInt8] {
    [0x03, 0, 0, 0] + RTMPScript.u24(UInt32(count)) + [20, 0x03, 0x02, 0x01, 0x00]
  }

  @Test func `A message that fits is one chunk`() {
    #expect(message(0) == header(0))
    #expect(message(1) == header(1) + [0])
    #expect(message(128) == header(128) + payload(128))
  }

  @Test func `A longer message goes on in chunks without a header of their own`() {
    let bytes = payload(300)
    let (first, second) = (Array(bytes[..<128]), Array(bytes[128..<256]))
    #expect(message(129) == header(129) + first + [0xC3, 128])
    #expect(message(256) == header(256) + first + [0xC3] + second)
    #expect(message(257) == header(257) + first + [0xC3] + second + [0xC3, 0])
  }

  @Test func `A chunk size holds for what is written after it`() {
    var writer = ChunkWriter()
    let told = written { writer.writeSetChunkSize(4096, to: &$0) }
    #expect(told == [0x02, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0x10, 0])
    #expect(writer.chunkSize == 4096)
    #expect(message(4096, by: writer) == header(4096) + payload(4096))
    #expect(message(4097, by: writer).count == header(0).count + 4097 + 1)
  }

  /// RTMP 5.4.3 to 5.4.5 and 7.1.7, on chunk stream 2 and message stream 0.
  @Test func `Control messages have the bytes that the protocol says`() {
    let writer = ChunkWriter()
    func control(_ type: UInt8, _ body: [UInt8]) -> [UInt8] {
      [0x02, 0, 0, 0, 0, 0, UInt8(body.count), type, 0, 0, 0, 0] + body
    }
    #expect(written { writer.writeAcknowledgement(0xFFFF_FFFE, to: &$0) } == control(3, [0xFF, 0xFF, 0xFF, 0xFE]))
    #expect(written { writer.writeWindowAcknowledgementSize(2_500_000, to: &$0) } == control(5, [0, 0x26, 0x25, 0xA0]))
    #expect(written { writer.writeSetPeerBandwidth(2_500_000, to: &$0) } == control(6, [0, 0x26, 0x25, 0xA0, 2]))
    #expect(written { writer.writeUserControl(.streamBegin, 1, to: &$0) } == control(4, [0, 0, 0, 0, 0, 1]))
    #expect(written { writer.writeUserControl(.pingResponse, 7, to: &$0) } == control(4, [0, 7, 0, 0, 0, 7]))
  }

  @Test func `A command is its values one behind the other`() {
    let bytes = written {
      ChunkWriter().writeCommand([.string("_result"), .number(1), .null], messageStream: 1, to: &$0)
    }
    let body: [UInt8] = [2, 0, 7] + Array("_result".utf8) + [0, 0x3F, 0xF0, 0, 0, 0, 0, 0, 0, 5]
    #expect(bytes == [0x03, 0, 0, 0, 0, 0, UInt8(body.count), 20, 1, 0, 0, 0] + body)
    let status = written { ChunkWriter().writeCommand([.null], chunkStream: ChunkWriter.statusStream, to: &$0) }
    #expect(status.first == 0x05)
  }
}
