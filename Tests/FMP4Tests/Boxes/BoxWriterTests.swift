@testable import FMP4
import NIOCore
import Support
import Testing

@Suite("Boxes as they are written")
struct BoxWriterTests {
  private func bytes(_ capacity: Int, _ body: (inout OutputRawSpan) -> Void) -> [UInt8] {
    Array(ByteBuffer.boxes(capacity: capacity, body).readableBytesView)
  }

  @Test func `A size counts its header and all boxes within`() {
    let written = bytes(40) { out in
      out.box("moof") { out in
        out.fullBox("mfhd") { $0.u32(7) }
        out.box("traf") { _ in }
      }
    }
    let expected = BoxBytes.box(
      "moof", BoxBytes.fullBox("mfhd", BoxBytes.u32(7)) + BoxBytes.box("traf"))
    #expect(written == expected && written.count == 32)
  }

  @Test func `Flags have 24 bits: more of them do not change the version`() {
    let written = bytes(12) { $0.fullBox("tfhd", version: 1, flags: 0xFF02_0038) { _ in } }
    #expect(Array(written.suffix(4)) == [1, 2, 0, 0x38])
  }

  @Test func `Numbers are big-endian, and of 24 bits the lower ones are written`() {
    let written = bytes(25) {
      $0.u8(0xAB)
      $0.u16(0x0102)
      $0.u24(0xFF01_0203)
      $0.u32(0x0102_0304)
      $0.i16(-2)
      $0.i32(-3)
      $0.u64(0x0102_0304_0506_0708)
      $0.u8(0xCD)
    }
    let ends: [UInt8] = [0xAB, 1, 2, 1, 2, 3, 1, 2, 3, 4, 0xFF, 0xFE, 0xFF, 0xFF, 0xFF, 0xFD]
    #expect(written == ends + [1, 2, 3, 4, 5, 6, 7, 8, 0xCD])
    #expect(bytes(8) { $0.i64(-1) } == [UInt8](repeating: 0xFF, count: 8))
  }

  @Test func `A table states the number of its entries`() {
    let written = bytes(64) { $0.table("stts", version: 1, [3, 4] as [UInt16]) { $0.u16($1) } }
    #expect(written == BoxBytes.box("stts", [1, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0, 4]))
    #expect(
      bytes(16) { $0.table("stss", [UInt32]()) { $0.u32($1) } } == BoxBytes.box("stss", [UInt8](repeating: 0, count: 8))
    )
  }

  @Test func `Text ends with a zero byte, whatever it is made of`() {
    #expect(bytes(8) { $0.cString("né") } == [0x6E, 0xC3, 0xA9, 0])
    #expect(bytes(1) { $0.cString("") } == [0])
  }

  @Test func `A number that is known later replaces four bytes, and no more`() {
    let written = bytes(8) {
      $0.zeros(2)
      $0.u32(0)
      $0.bytes([9, 9])
      $0.patch(u32: 0xAABB_CCDD, at: 2)
    }
    #expect(written == [0, 0, 0xAA, 0xBB, 0xCC, 0xDD, 9, 9])
  }
}
