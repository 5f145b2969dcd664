import Base
import NIOCore
@testable import RTMP
import Testing

/// The numbers in brackets are sections of amf-file-format-spec.
@Suite("Action Message Format 3")
struct AMF3Tests {
  private func read(_ bytes: [UInt8]) throws(WireError) -> AMFValue {
    var buffer = ByteBuffer(bytes: bytes)
    let value = try AMF3.read(&buffer)
    guard buffer.readableBytes == 0 else { throw WireError(.malformed, "\(buffer.readableBytes) bytes are left") }
    return value
  }

  /// [1.3.1, 3.6]
  @Test(
    arguments: [
      ([0x00], 0), ([0x7F], 127), ([0x81, 0x00], 128), ([0xFF, 0x7F], 16_383), ([0x81, 0x80, 0x00], 16_384),
      ([0xFF, 0xFF, 0x7F], 2_097_151), ([0x80, 0xC0, 0x80, 0x00], 2_097_152), ([0xBF, 0xFF, 0xFF, 0xFF], 268_435_455),
      ([0xC0, 0x80, 0x80, 0x00], -268_435_456), ([0xFF, 0xFF, 0xFF, 0xFF], -1),
    ] as [([UInt8], Double)])
  func `Integers have one to four bytes and a sign`(_ bytes: [UInt8], _ value: Double) throws {
    #expect(try read([0x04] + bytes) == .number(value))
  }

  /// [3.2 to 3.5, 3.7, 3.10]
  @Test func `Simple values are read`() throws {
    #expect(try read([0x00]) == .undefined)
    #expect(try read([0x01]) == .null)
    #expect(try read([0x02]) == .boolean(false))
    #expect(try read([0x03]) == .boolean(true))
    #expect(try read([0x05, 0xC0, 0x04, 0, 0, 0, 0, 0, 0]) == .number(-2.5))
    #expect(try read([0x06, 0x07] + Array("abc".utf8)) == .string("abc"))
    #expect(try read([0x06, 0x01]) == .string(""))
    #expect(try read([0x08, 0x01, 0x42, 0x78, 0, 0, 0, 0, 0, 0]) == .date(0x0180_0000_0000))
  }

  /// [3.9, 3.13, 3.14]
  @Test func `Markup is text, and bytes are nothing that is used`() throws {
    #expect(try read([0x07, 0x05, 0x3C, 0x3E]) == .string("<>"))
    #expect(try read([0x0B, 0x05, 0x3C, 0x3E]) == .string("<>"))
    #expect(try read([0x0C, 0x07, 1, 2, 3]) == .undefined)
  }

  /// [2.2]
  @Test(arguments: [0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C] as [UInt8])
  func `A reference to a whole object is undefined`(_ marker: UInt8) throws {
    #expect(try read([marker, 0x00]) == .undefined)
  }

  /// [1.3.2]: the empty string is never sent by reference.
  @Test func `Strings are referred to in the order in which they came, the empty one not`() throws {
    // An array of four counted values, behind an empty name.
    let array: [UInt8] = [0x09, 0x09, 0x01, 0x06, 0x03, 0x61, 0x06, 0x01, 0x06, 0x03, 0x62, 0x06, 0x02]
    let texts = ["a", "", "b", "b"].map { AMFValue.Property(name: "", value: .string($0)) }
    #expect(try read(array) == .ecmaArray(texts))
    #expect(throws: WireError(.malformed, "AMF3 refers to string 0")) { try read([0x06, 0x00]) }
    #expect(throws: WireError(.malformed, "AMF3 refers to string 2")) {
      try read([0x09, 0x05, 0x01, 0x06, 0x03, 0x61, 0x06, 0x04])
    }
  }

  /// [3.12]: a class without a name that has one sealed member, twice; the second time by reference.
  @Test func `Classes are referred to by their number`() throws {
    let objects: [UInt8] = [0x09, 0x05, 0x01, 0x0A, 0x13, 0x01, 0x03, 0x61, 0x04, 0x05, 0x0A, 0x01, 0x02]
    #expect(
      try read(objects)
        == .ecmaArray([
          .init(name: "", value: .object(["a": .number(5)])), .init(name: "", value: .object(["a": .boolean(false)])),
        ]))
    #expect(throws: WireError(.malformed, "AMF3 refers to class 1")) { try read([0x0A, 0x05]) }
  }

  @Test func `Sealed members come before dynamic ones`() throws {
    // One sealed member "a", dynamic: "b" follows with its name.
    let object: [UInt8] = [0x0A, 0x1B, 0x01, 0x03, 0x61, 0x01, 0x03, 0x62, 0x03, 0x01]
    #expect(try read(object) == .object(["a": .null, "b": .boolean(true)]))
    #expect(try read([0x0A, 0x03, 0x01]) == .object([:]), "no members at all")
  }

  @Test(arguments: [0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x12, 0xFF] as [UInt8])
  func `Vectors, dictionaries and what is unknown are refused`(_ marker: UInt8) {
    #expect(throws: WireError(.unsupported, "AMF3 marker \(marker) is not supported")) { try read([marker, 1, 1]) }
  }

  @Test func `Objects that write themselves are refused`() {
    #expect(throws: WireError(.unsupported, "AMF3 externalizable objects are not supported")) {
      try read([0x0A, 0x07, 0x01])
    }
  }

  @Test func `Whatever is cut short anywhere is refused`() {
    let whole: [UInt8] = [
      0x09, 0x07, 0x03, 0x61, 0x05, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x0A, 0x1B, 0x01, 0x03, 0x62, 0x08, 0x01, 0, 0, 0, 0,
      0, 0, 0, 0, 0x03, 0x63, 0x07, 0x03, 0x3C, 0x01, 0x04, 0xFF, 0xFF, 0xFF, 0xFF, 0x0C, 0x03, 9,
    ]
    #expect(throws: Never.self) { try read(whole) }
    for length in 0..<whole.count {
      #expect(throws: WireError.self, "\(length)") { try read(Array(whole.prefix(length))) }
    }
  }

  @Test func `Counts that cannot be are refused before anything is kept`() {
    #expect(throws: WireError(.malformed, "AMF array announces 268435455 values in 1 bytes")) {
      try read([0x09, 0xFF, 0xFF, 0xFF, 0xFF, 0x01])
    }
    #expect(throws: WireError(.malformed, "AMF3 class announces 7 names in 1 bytes")) {
      try read([0x0A, 0x73, 0x01, 0x01])
    }
    #expect(throws: WireError.self) { try read([0x06, 0xFF, 0xFF, 0xFF, 0xFF, 0x61]) }
  }
}
