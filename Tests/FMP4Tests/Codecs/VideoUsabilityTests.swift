@testable import FMP4
import Support
import Testing

@Suite("Video usability information")
struct VideoUsabilityTests {
  /// The fields that H.264 §E.1.1 and H.265 §E.2.1 begin with, in their order. Nil leaves a part out.
  private func bits(
    aspect: String? = nil, overscan: String? = nil, signal: String? = nil, location: String? = nil
  ) -> String {
    [aspect, overscan, signal, location].map { part in part.map { "1 \($0) " } ?? "0 " }.joined()
  }

  private func read(_ bits: String) throws -> (VideoUsability, bitsRead: Int) {
    var reader = BitReader(BitText.bytes(bits))
    return (try VideoUsability(&reader), reader.position)
  }

  @Test func `Where nothing is said samples are square and colours unknown`() throws {
    let (usability, bitsRead) = try read(bits())
    #expect(usability.sampleAspectRatio == .square && usability.color == nil && bitsRead == 4)
  }

  /// H.264 table E-1.
  @Test(
    arguments: [
      (0, 1, 1), (1, 1, 1), (2, 12, 11), (4, 16, 11), (14, 4, 3), (16, 2, 1), (17, 1, 1), (254, 1, 1),
    ] as [(Int, UInt16, UInt16)])
  func `The shape of samples is found in the table`(_ index: Int, _ width: UInt16, _ height: UInt16) throws {
    let (usability, bitsRead) = try read(bits(aspect: BitText.number(index, 8)))
    #expect(usability.sampleAspectRatio == SampleAspectRatio(width, height) && bitsRead == 12)
  }

  @Test func `Index 255 states the shape itself, and a side of 0 is no shape`() throws {
    func ratio(_ width: Int, _ height: Int) throws -> SampleAspectRatio {
      let (usability, bitsRead) = try read(
        bits(aspect: BitText.number(255, 8) + BitText.number(width, 16) + BitText.number(height, 16)))
      #expect(bitsRead == 44)
      return usability.sampleAspectRatio
    }
    #expect(try ratio(64, 48) == SampleAspectRatio(4, 3))
    #expect(try ratio(65_535, 1) == SampleAspectRatio(65_535, 1))
    #expect(try ratio(0, 9) == .square)
    #expect(try ratio(9, 0) == .square)
  }

  @Test func `Colours are primaries, transfer, matrix and range in that order`() throws {
    let description = [9, 16, 10].map { BitText.number($0, 8) }.joined()
    #expect(
      try read(bits(signal: "101 0 1" + description)).0.color
        == ColorDescription(primaries: 9, transfer: 16, matrix: 10, range: .limited))
    #expect(
      try read(bits(signal: "101 1 1" + description)).0.color
        == ColorDescription(primaries: 9, transfer: 16, matrix: 10, range: .full))
  }

  @Test func `Full range alone is told, limited range alone is what is assumed anyway`() throws {
    #expect(
      try read(bits(signal: "101 1 0")).0.color
        == ColorDescription(primaries: 2, transfer: 2, matrix: 2, range: .full))
    #expect(try read(bits(signal: "101 0 0")).0.color == nil)
  }

  @Test func `Overscan and chroma locations are passed over, up to 5`() throws {
    let (usability, bitsRead) = try read(bits(overscan: "1", signal: "000 0 0", location: "00110 1"))
    #expect(usability.color == nil && bitsRead == 16)
    for location in ["00111 1", "1 00111"] {
      #expect(throws: CodecError.self) { try read(bits(location: location)) }
    }
  }

  @Test func `What is cut short at any byte throws`() throws {
    let whole = BitText.bytes(
      bits(
        aspect: BitText.number(255, 8) + BitText.number(0x1234_5678, 32), overscan: "0",
        signal: "101 0 1" + BitText.number(0x010101, 24), location: "00110 00110"))
    for length in 0..<whole.count {
      var reader = BitReader(Array(whole.prefix(length)))
      #expect(throws: CodecError.self) { try VideoUsability(&reader) }
    }
    var reader = BitReader(whole)
    #expect(try VideoUsability(&reader).sampleAspectRatio == SampleAspectRatio(0x1234, 0x5678))
  }
}
