import CLibAV
import FMP4
import LibAV
import NIOCore
import Testing
@testable import Transcode

@Suite("A decoder of one key frame")
struct KeyFrameDecoderTests {
  private func decoder(_ track: TrackDescription, largest: Int = 320 * 192) throws -> KeyFrameDecoder {
    try KeyFrameDecoder(track.codec.id, record: track.codec.record(), maximumPixels: largest)
  }

  @Test func `A key frame becomes an image of its size`() throws {
    let (sample, track) = try StillImageTests.keyFrame()
    let image = try decoder(track).decode(sample.payload)
    #expect(image.frame.pointee.width == 320 && image.frame.pointee.height == 180)
    #expect(image.frame.pointee.data.0 != nil)
  }

  @Test func `An image larger than allowed is refused`() throws {
    let (sample, track) = try StillImageTests.keyFrame()
    #expect(throws: LibAVError.self) { try decoder(track, largest: 320 * 100).decode(sample.payload) }
  }

  @Test func `What is no key frame throws and names the attempt`() throws {
    let (_, track) = try StillImageTests.keyFrame()
    for bytes in [[], [0], [0, 0, 0, 200, 0x65], [UInt8](repeating: 0xFF, count: 500)] as [[UInt8]] {
      let error = try #require(throws: LibAVError.self) { try decoder(track).decode(ByteBuffer(bytes: bytes)) }
      #expect(error.attempt == "decode the key frame" && error.code < 0)
    }
  }

  @Test func `A key frame that is cut short anywhere throws or gives an image`() throws {
    let (sample, track) = try StillImageTests.keyFrame()
    let size = sample.payload.readableBytes
    for length in stride(from: 0, to: size, by: max(1, size / 40)) {
      guard let cut = sample.payload.getSlice(at: sample.payload.readerIndex, length: length) else { continue }
      if let image = try? decoder(track).decode(cut) { #expect(image.frame.pointee.width == 320) }
    }
  }
}
