@testable import FMP4
import NIOCore
import Testing

/// Beginnings of frames by libvpx (ffmpeg 5.1.9, `-c:v libvpx`), of 640×360.
@Suite struct VP8Tests {
  private static let key: [UInt8] = [0x10, 0x2F, 0x01, 0x9D, 0x01, 0x2A, 0x80, 0x02, 0x68, 0x01, 0x00, 0x47]
  private static let frame: [UInt8] = [0xB1, 0x03, 0x00, 0x11, 0x10]

  private static func codec(_ bytes: [UInt8]) throws -> VP8.Configuration {
    try VP8.Configuration(stream: ByteBuffer(bytes: bytes))
  }

  @Test func `A key frame states the size, and asks for scaling that nobody does`() throws {
    let configuration = try Self.codec(Self.key)
    #expect(configuration.format.displaySize == (640, 360) && configuration.record() == [2, 0x80, 1, 0x68])
    var scaled = Self.key
    (scaled[7], scaled[9]) = (0x42, 0xC1)
    #expect(try Self.codec(scaled) == configuration)
    #expect(throws: CodecError.self) { _ = try Self.codec(Self.frame) }
  }

  @Test func `Key frames are told from others, and those that are damaged from both`() throws {
    func unit(_ bytes: [UInt8]) throws -> AccessUnit { try VP8.accessUnit(ByteBuffer(bytes: bytes)) }
    #expect(try unit(Self.key).isSync && unit(Self.key).parameterSets == [Array(Self.key.prefix(10))])
    #expect(try !unit(Self.frame).isSync && unit(Self.frame).parameterSets.isEmpty)
    #expect(VP8.Configuration.fault(inFrame: ByteBuffer(bytes: Self.frame)) == nil)
    for count in 1..<10 {
      #expect(throws: CodecError.self, "\(count) bytes") { _ = try unit(Array(Self.key.prefix(count))) }
    }
    for place in 3...5 {
      var wrong = Self.key
      wrong[place] ^= 1
      #expect(VP8.Configuration.fault(inFrame: ByteBuffer(bytes: wrong)) != nil)
    }
    var flat = Self.key
    (flat[6], flat[7]) = (0, 0xC0)
    #expect(throws: CodecError.self, "a width of 0") { _ = try unit(flat) }
  }

  @Test func `Another size is another configuration, the same one is none`() throws {
    let configuration = try Self.codec(Self.key)
    var larger = Self.key
    (larger[6], larger[7]) = (0x00, 0x05)
    #expect(configuration.updated(withParameterSets: [Array(Self.key.prefix(10))]) == nil)
    #expect(configuration.updated(withParameterSets: [Array(larger.prefix(10))])?.format.width == 1280)
  }
}
