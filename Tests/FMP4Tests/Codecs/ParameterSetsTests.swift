@testable import FMP4
import Testing

@Suite("ParameterSets and the text of codec strings")
struct ParameterSetsTests {
  /// The number is the second byte; a set of one byte has none.
  private func number(_ set: [UInt8]) -> UInt32? { set.dropFirst().first.map(UInt32.init) }

  private func replaced(_ set: [UInt8], in sets: [[UInt8]]) -> [[UInt8]] {
    var sets = sets
    replaceParameterSet(set, in: &sets, number: number)
    return sets
  }

  @Test func `A set takes the place of the one with its number`() {
    #expect(replaced([7, 1, 9], in: [[7, 0], [7, 1], [7, 2]]) == [[7, 0], [7, 1, 9], [7, 2]])
  }

  @Test func `A set with a number of its own comes last`() {
    #expect(replaced([7, 3], in: [[7, 4], [7, 1]]) == [[7, 4], [7, 1], [7, 3]])
    #expect(replaced([7, 3], in: []) == [[7, 3]])
  }

  @Test func `A set that is there changes nothing, and one without a number is left out`() {
    #expect(replaced([7, 1], in: [[7, 1], [7, 2]]) == [[7, 1], [7, 2]])
    #expect(replaced([7], in: [[7, 1]]) == [[7, 1]])
    #expect(replaced([], in: [[7, 1]]) == [[7, 1]])
  }

  @Test func `Bytes are two capital hexadecimal digits, numbers two decimal ones`() {
    #expect([0, 9, 10, 16, 0xC0, 255].map { hex($0) } == ["00", "09", "0A", "10", "C0", "FF"])
    #expect([0, 9, 10, 99].map { twoDigits($0) } == ["00", "09", "10", "99"])
  }

  @Test func `Numbers are appended big-endian, each in its own length`() {
    var bytes: [UInt8] = [1]
    appendBigEndian(UInt16(0x0203), to: &bytes)
    appendBigEndian(Int32(-2), to: &bytes)
    appendBigEndian(UInt8(4), to: &bytes)
    #expect(bytes == [1, 2, 3, 0xFF, 0xFF, 0xFF, 0xFE, 4])
  }
}
