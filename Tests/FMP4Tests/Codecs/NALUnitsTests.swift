@testable import FMP4
import NIOCore
import Support
import Testing

@Suite("NAL units of an access unit")
struct NALUnitsTests {
  // MARK: Behind lengths (ISO/IEC 14496-15 §5.3.2)

  /// The places of all units, and the error that ended the walk.
  private func walk(_ bytes: [UInt8], lengthSize: Int) -> (units: [[Int]], error: CodecError?) {
    // The bytes before the reader are another's.
    var buffer = ByteBuffer(bytes: [0xEE, 0xEE, 0xEE] + bytes)
    buffer.moveReaderIndex(forwardBy: 3)
    var units = LengthPrefixedNALUnits(buffer, lengthSize: lengthSize)
    var found: [[Int]] = []
    do {
      while let unit = try units.next() { found.append([unit.index - 3, unit.length]) }
      return (found, nil)
    } catch {
      return (found, error)
    }
  }

  @Test func `Each length size finds the same units, empty ones among them`() {
    #expect(walk([2, 9, 9, 0, 1, 8], lengthSize: 1).units == [[1, 2], [4, 0], [5, 1]])
    #expect(walk([0, 2, 9, 9, 0, 0, 0, 1, 8], lengthSize: 2).units == [[2, 2], [6, 0], [8, 1]])
    #expect(walk([0, 0, 0, 2, 9, 9, 0, 0, 0, 0], lengthSize: 4).units == [[4, 2], [10, 0]])
    #expect(walk([], lengthSize: 4) == ([], nil))
  }

  @Test func `A length or a unit that is cut short ends the walk with the unit's place`() {
    #expect(
      walk([0, 1, 9, 0], lengthSize: 2)
        == ([[2, 1]], CodecError(.truncated, "the access unit ends within a NAL unit's length", offset: 3)))
    #expect(
      walk([0, 0, 0, 3, 9, 9], lengthSize: 4)
        == ([], CodecError(.truncated, "a NAL unit of 3 bytes, of which 2 are there", offset: 0)))
    #expect(
      walk([0xFF, 0xFF, 0xFF, 0xFF, 9], lengthSize: 4)
        == ([], CodecError(.truncated, "a NAL unit of 4294967295 bytes, of which 1 are there", offset: 0)))
  }

  // MARK: Behind start codes (ITU-T H.264 Annex B)

  private func units(annexB bytes: [UInt8]) -> [[UInt8]] {
    var units = AnnexBNALUnits(ByteBuffer(bytes: bytes))
    var found: [[UInt8]] = []
    while let unit = units.next() { found.append(Array(unit)) }
    return found
  }

  @Test(
    arguments: [
      ([0, 0, 1, 0x67, 5], [[0x67, 5]]), ([0, 0, 0, 1, 0x67, 5, 0, 0, 1, 0x68], [[0x67, 5], [0x68]]),
      // Zeros before a start code and at the end belong to no unit (§B.2).
      ([0, 0, 1, 0x67, 0, 0, 0, 0, 1, 0x68, 0, 0, 0], [[0x67], [0x68]]),
      // What stands before the first start code is no unit.
      ([9, 9, 0, 0, 1, 0x67], [[0x67]]), ([9, 9, 9], []), ([0, 0, 1], []), ([0, 0, 1, 0, 0, 1, 0x65], [[0x65]]),
      ([0, 0, 0], []), ([], []), ([0, 0, 1, 0x67, 0, 0, 3, 0, 0, 2], [[0x67, 0, 0, 3, 0, 0, 2]]),
      ([0, 0, 1, 1, 0, 0, 1, 1], [[1], [1]]), ([0, 1, 0, 0, 1, 0x41, 0, 1], [[0x41, 0, 1]]),
    ] as [([UInt8], [[UInt8]])])
  func `Start codes part units`(_ stream: [UInt8], _ expected: [[UInt8]]) {
    #expect(units(annexB: stream) == expected)
  }

  @Test func `A start code is found wherever it lies`() {
    for before in 0..<12 {
      for filler: UInt8 in [0, 2, 0xFF] {
        let stream = [0, 0, 1, 0x65] + [UInt8](repeating: filler, count: before) + [9, 0, 0, 1, 0x41]
        let first = [0x65] + [UInt8](repeating: filler, count: before) + [9]
        #expect(units(annexB: stream) == [first, [0x41]])
      }
    }
  }

  // MARK: Both together

  @Test func `A header of one byte has 0 in place of the second`() {
    let buffer = ByteBuffer(bytes: [0x26, 0x01])
    #expect(NALUnitHeader(buffer, at: 0, length: 2)?.second == 1)
    #expect(NALUnitHeader(buffer, at: 0, length: 1)?.second == 0)
    #expect(NALUnitHeader(buffer, at: 1, length: 1)?.first == 1)
    #expect(NALUnitHeader(buffer, at: 0, length: 0) == nil)
    #expect(NALUnitHeader(buffer, at: 2, length: 1) == nil)
  }

  /// The first byte of a unit is its fate here.
  private func fate(_ header: NALUnitHeader) -> NALUnitFate {
    switch header.first {
    case 1: .keepReference
    case 2: .keepDisposable
    case 3: .keepSync
    case 4: .parameterSet
    case 5: .drop
    default: .keep
    }
  }

  @Test(
    arguments: [
      ([1], false, false), ([2], false, true), ([2, 1], false, false), ([3], true, false), ([3, 2], true, false),
      ([6], false, false), ([2, 6], false, true),
    ] as [([UInt8], Bool, Bool)])
  func `All slices of a frame decide together`(_ firsts: [UInt8], _ isSync: Bool, _ isDisposable: Bool) throws {
    let lengths = ByteBuffer(bytes: firsts.flatMap { [1, $0] })
    let codes = ByteBuffer(bytes: firsts.flatMap { [0, 0, 1, $0] })
    for unit in [
      try NALUnits.accessUnit(lengths, lengthSize: 1, fate: fate), NALUnits.accessUnit(annexB: codes, fate: fate),
    ] {
      #expect(unit.isSync == isSync && unit.isDisposable == isDisposable)
      #expect(Array(unit.payload.readableBytesView) == firsts.flatMap { [0, 0, 0, 1, $0] })
    }
  }

  @Test func `At most 32 parameter sets are taken, and none of more than 65535 bytes`() throws {
    let sets = (0..<40).map { [4, UInt8($0)] as [UInt8] }
    let many = try NALUnits.accessUnit(
      ByteBuffer(bytes: sets.flatMap { BoxBytes.u32(2) + $0 }), lengthSize: 4, fate: fate)
    #expect(many.parameterSets == Array(sets.prefix(32)) && many.payload.readableBytes == 0)
    for (size, count) in [(65_535, 1), (65_536, 0)] {
      let set = [4] + [UInt8](repeating: 7, count: size - 1)
      let stream = ByteBuffer(bytes: [0, 0, 1] + set)
      #expect(NALUnits.accessUnit(annexB: stream, fate: fate).parameterSets.count == count)
      let prefixed = ByteBuffer(bytes: BoxBytes.u32(UInt32(size)) + set)
      #expect(try NALUnits.accessUnit(prefixed, lengthSize: 4, fate: fate).parameterSets.count == count)
    }
  }
}
