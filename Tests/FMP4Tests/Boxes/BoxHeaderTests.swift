import NIOCore
import Testing

@testable import FMP4

@Suite struct BoxHeaderTests {
  private func header(_ short: UInt32, _ long: UInt64? = nil, room: UInt64 = 1 << 40) -> BoxHeader? {
    var bytes = ByteBuffer(integer: short)
    bytes.writeString("mdat")
    if let long { bytes.writeInteger(long) }
    return BoxHeader(bytes, room: room)
  }

  @Test func aSizeCountsTheHeader() throws {
    let small = try #require(header(24))
    #expect(small.type == "mdat" && small.length == 8 && small.size == 24 && small.payloadSize == 16)
    let large = try #require(header(1, 1 << 33))
    #expect(large.length == 16 && large.size == 1 << 33 && large.payloadSize == 1 << 33 - 16)
    #expect(header(8)?.payloadSize == 0 && header(1, 16)?.payloadSize == 0)
  }

  @Test func aBoxThatIsSmallerThanItsHeaderIsNone() {
    for size in [0, 2, 7] as [UInt32] { #expect(header(size) == nil) }
    for size in 0...15 as ClosedRange<UInt64> { #expect(header(1, size) == nil) }
  }

  @Test func aBoxThatDoesNotFitIsNone() {
    #expect(header(25, room: 24) == nil && header(24, room: 24) != nil)
    #expect(header(1, .max) == nil && header(1) == nil)
    #expect(BoxHeader(ByteBuffer(bytes: [0, 0, 0, 8, 0x66]), room: 100) == nil)
  }
}
