import CLibAV
import FMP4
import LibAV
@testable import Local
import NIOCore
import Testing
@testable import Transcode

@Suite("Frames of a camera that sends JPEGs")
struct JPEGDecoderTests {
  private func jpeg() throws -> [UInt8] {
    let (sample, track) = try StillImageTests.keyFrame()
    let jpeg = try StillImage.jpeg(of: try StillImageRequest(of: sample.payload, track: track))
    return Array(jpeg.readableBytesView)
  }

  private func decode(_ bytes: [UInt8], _ decoder: JPEGDecoder) -> (width: Int32, height: Int32)? {
    bytes.withUnsafeBytes { decoder.decode($0) }.map { ($0.frame.pointee.width, $0.frame.pointee.height) }
  }

  @Test func `A whole JPEG is a frame, one after the other`() throws {
    let decoder = try JPEGDecoder()
    let bytes = try jpeg()
    for _ in 0..<3 {
      let size = try #require(decode(bytes, decoder))
      #expect(size == (320, 180))
    }
  }

  @Test func `Bytes that are none are no frame, and the next one is`() throws {
    let decoder = try JPEGDecoder()
    let bytes = try jpeg()
    // libavcodec finds a frame without its first marker, so that is none of these.
    for broken in [[], [0xFF], [0xFF, 0xD8, 0xFF, 0xD9], [UInt8](repeating: 0, count: 5000)] as [[UInt8]] {
      #expect(decode(broken, decoder) == nil, "\(broken.count) bytes")
      #expect(decode(bytes, decoder) != nil)
    }
    #expect(decoder.decode(UnsafeRawBufferPointer(start: nil, count: 0)) == nil)
  }

  @Test func `Changed and missing bytes never harm`() throws {
    let decoder = try JPEGDecoder()
    let bytes = try jpeg()
    for place in stride(from: 0, to: bytes.count, by: max(1, bytes.count / 60)) {
      _ = decode(Array(bytes.prefix(place)), decoder)
      var changed = bytes
      changed[place] ^= 0x55
      _ = decode(changed, decoder)
    }
    #expect(decode(bytes, decoder) != nil)
  }
}
