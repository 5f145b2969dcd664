@testable import FMP4
import NIOCore
import Testing

@Suite struct BoxHeaderTests {
  private func header(
    _ short: UInt32, _ long: UInt64? = nil, at offset: UInt64 = 0, room: UInt64 = 1 << 40
  ) throws(BoxError) -> BoxHeader {
    var bytes = ByteBuffer(integer: short)
    bytes.writeString("mdat")
    if let long { bytes.writeInteger(long) }
    return try BoxHeader(bytes, in: offset..<offset + room, of: ["moof"])
  }

  private func code(_ short: UInt32, _ long: UInt64? = nil, room: UInt64 = 1 << 40) -> BoxError.Code? {
    do throws(BoxError) {
      _ = try header(short, long, room: room)
      return nil
    } catch {
      return error.code
    }
  }

  @Test func aSizeCountsTheHeader() throws {
    let small = try header(24, at: 100)
    #expect(small.type == "mdat" && small.length == 8 && small.size == 24 && small.payloadSize == 16)
    #expect(small.range == 100..<124 && small.payload == 108..<124 && small.extent == .stated)
    let large = try header(1, 1 << 33)
    #expect(large.length == 16 && large.size == 1 << 33 && large.payloadSize == 1 << 33 - 16)
    #expect(try header(8).payloadSize == 0 && header(1, 16).payloadSize == 0)
  }

  @Test func aSizeOfNothingReachesToTheEnd() throws {
    let open = try header(0, at: 100, room: 30)
    #expect(open.extent == .open && open.range == 100..<130 && open.payload == 108..<130)
    #expect(try header(0, room: 8).payloadSize == 0)
    #expect(try header(0, room: .max).size == .max)
  }

  @Test func zerosAreNoBox() {
    #expect(throws: BoxError(.blank, ["moov"], at: 7)) {
      try BoxHeader(ByteBuffer(repeating: 0, count: 16), in: 7..<100, of: ["moov"])
    }
  }

  @Test func aBoxThatIsSmallerThanItsHeaderIsNone() {
    for size in [2, 7] as [UInt32] { #expect(code(size) == .small(size: UInt64(size))) }
    for size in 0...15 as ClosedRange<UInt64> { #expect(code(1, size) == .small(size: size)) }
    #expect(code(0, room: 7) == .small(size: 7))
  }

  @Test func aBoxThatDoesNotFitIsNone() {
    #expect(code(25, room: 24) == .cut(size: 25, room: 24) && code(24, room: 24) == nil)
    #expect(code(.max) == nil && code(.max, room: 1 << 32 - 2) == .cut(size: 1 << 32 - 1, room: 1 << 32 - 2))
    for size in [1 << 63, UInt64.max - 1, .max] {
      #expect(code(1, size) == .cut(size: size, room: 1 << 40) && code(1, size, room: size) == nil)
    }
    #expect(code(1) == .truncated)
    #expect(throws: BoxError(.truncated, [], at: 3)) {
      try BoxHeader(ByteBuffer(bytes: [0, 0, 0, 8, 0x66]), in: 3..<100)
    }
  }

  @Test func anErrorNamesTheBoxAndItsPlace() {
    #expect(throws: BoxError(.cut(size: 25, room: 24), ["moof", "mdat"], at: 532)) {
      try header(25, at: 532, room: 24)
    }
    let error = BoxError(.cut(size: 25, room: 24), ["moof", "mdat"], at: 532)
    #expect("\(error)" == "moof/mdat at byte 532: it states a size of 25 bytes, but only 24 are left")
    #expect("\(BoxError(.blank, [], at: 8))" == "at byte 8: there are zeros where a box should begin")
    #expect("\(BoxError(.missing("tkhd"), ["moov", "trak"], at: 40))" == "moov/trak at byte 40: it has no tkhd")
  }
}
