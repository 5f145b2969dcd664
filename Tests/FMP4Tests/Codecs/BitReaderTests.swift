@testable import FMP4
import Support
import Testing

@Suite("Reading bits")
struct BitReaderTests {
  private func reader(_ bits: String) -> BitReader { BitReader(BitText.bytes(bits)) }

  @Test func `Bits come most significant first and across bytes`() throws {
    var reader = BitReader([0xA5, 0xFF, 0x00, 0x80])
    #expect(try reader.flag())
    #expect(try reader.bits(3) == 0b010)
    #expect(try reader.bits(8) == 0x5F)
    #expect(try reader.bits(12) == 0xF00)
    #expect(reader.position == 24 && reader.remaining == 8)
    #expect(try reader.bits(8) == 0x80)
    #expect(try reader.bits(0) == 0)
  }

  @Test func `32 bits are read from any place in a byte`() throws {
    for place in 0..<8 {
      var reader = BitReader(BitText.bytes(String(repeating: "0", count: place) + BitText.number(0xDEAD_BEEF, 32)))
      try reader.skip(place)
      #expect(try reader.bits(32) == 0xDEAD_BEEF)
    }
  }

  @Test func `A read beyond the end throws and moves nothing`() throws {
    var reader = BitReader([0xFF, 0x01])
    try reader.skip(9)
    #expect(throws: CodecError(.truncated, "the bits end within a field", offset: 2)) { try reader.bits(8) }
    #expect(throws: CodecError.self) { try reader.skip(8) }
    #expect(reader.position == 9)
    #expect(try reader.bits(7) == 1)
    #expect(throws: CodecError.self) { try reader.flag() }
  }

  @Test func `A place outside of the bytes is their nearest end`() {
    #expect(BitReader([1, 2], from: 5).remaining == 0)
    #expect(BitReader([1, 2], from: -1).remaining == 16)
    #expect(BitReader([1, 2], from: 1).remaining == 8)
    #expect(BitReader([]).remaining == 0)
  }

  @Test func `Aligning goes to the next whole byte and stays there`() throws {
    var reader = BitReader([0, 7])
    reader.alignToByte()
    #expect(reader.position == 0)
    try reader.skip(1)
    reader.alignToByte()
    #expect(reader.position == 8)
    #expect(try reader.bits(8) == 7)
    reader.alignToByte()
    #expect(reader.position == 16)
  }

  /// ITU-T H.264 tables 9-2 and 9-3.
  @Test(
    arguments: [
      ("1", 0, 0), ("010", 1, 1), ("011", 2, -1), ("00100", 3, 2), ("00101", 4, -2), ("00110", 5, 3), ("00111", 6, -3),
      ("0001000", 7, 4), ("0001111", 14, -7),
    ] as [(String, UInt32, Int32)])
  func `Exponential Golomb codes are those of the standard`(_ bits: String, _ number: UInt32, _ signed: Int32) throws {
    var reader = reader(bits)
    #expect(try reader.ue("x") == number)
    #expect(reader.position == bits.count)
    reader = self.reader(bits)
    #expect(try reader.se("x") == signed)
  }

  @Test func `The largest code has 63 bits and a longer one is refused`() throws {
    let zeros = String(repeating: "0", count: 31)
    let ones = String(repeating: "1", count: 31)
    var reader = reader(zeros + "1" + ones)
    #expect(try reader.ue("x") == UInt32.max - 1)
    reader = self.reader(zeros + "1" + ones)
    #expect(try reader.se("x") == -Int32.max)
    reader = self.reader("0" + zeros + "1" + ones)
    #expect(throws: CodecError(.invalid, "x is more than 32 bits", offset: 4)) { try reader.ue("x") }
  }

  @Test func `A number above its limit is refused with its name`() throws {
    var reader = reader("00110")
    #expect(try reader.ue("log2_max", max: 5) == 5)
    reader = self.reader("00111")
    #expect(throws: CodecError(.invalid, "log2_max is 6, at most 5 allowed", offset: 0)) {
      try reader.ue("log2_max", max: 5)
    }
  }

  @Test func `A code that is cut short throws`() {
    for bits in ["0000 0000", "0000 0001"] {
      var reader = reader(bits)
      #expect(throws: CodecError.self) { try reader.ue("x") }
    }
  }

  /// ITU-T H.264 §7.4.1: 00 00 03 stands for 00 00.
  @Test(
    arguments: [
      ([0x67, 0, 0, 3, 1], [0, 0, 1]), ([0x67, 0, 0, 3], [0, 0]), ([0x67, 0, 0, 3, 3], [0, 0, 3]),
      ([0x67, 0, 3], [0, 3]),
      ([0x67, 0, 0, 3, 0, 0, 3, 1], [0, 0, 0, 0, 1]), ([0x67, 0, 0, 3, 0, 3], [0, 0, 0, 3]), ([0x67, 1, 2], [1, 2]),
      ([0x67], []), ([], []),
    ] as [([UInt8], [UInt8])])
  func `Emulation prevention bytes are taken out`(_ unit: [UInt8], _ payload: [UInt8]) throws {
    var reader = BitReader(nalUnit: unit, headerLength: 1)
    #expect(reader.remaining == payload.count * 8)
    for byte in payload { #expect(try reader.bits(8) == UInt32(byte)) }
  }
}
