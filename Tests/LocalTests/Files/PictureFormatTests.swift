@testable import Local
import NIOCore
import Testing

@Suite("The format and the size of a picture, by its first bytes")
struct PictureFormatTests {
  private static let webp = Array("RIFF....WEBP".utf8)

  /// Beginnings of 640×360 pictures, up to the last byte of the size.
  private static let beginnings: [(PictureFormat, [UInt8])] = [
    (.png, Array(PictureBytes.png(width: 640, height: 360, data: []).prefix(24))),
    (.bmp, Array(PictureBytes.bmp(width: 640, height: 360, []).prefix(26))),
    // OS/2.
    (.bmp, Array("BM............".utf8) + [12, 0, 0, 0, 0x80, 2, 0x68, 1]),
    // The rows begin at the top: the height is -360.
    (.bmp, Array("BM............".utf8) + [40, 0, 0, 0, 0x80, 2, 0, 0, 0x98, 0xFE, 0xFF, 0xFF]),
    // A segment of four bytes, a fill byte, and the header of a progressive frame.
    (.jpeg, [0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 1, 2, 0xFF, 0xFF, 0xC2, 0, 17, 8, 1, 0x68, 2, 0x80]),
    (.webp, webp + Array("VP8 ....tag".utf8) + [0x9D, 0x01, 0x2A, 0x80, 0x42, 0x68, 0x41]),
    (.webp, webp + Array("VP8L....".utf8) + [0x2F, 0x7F, 0xC2, 0x59, 0]),
    (.webp, webp + Array("VP8X....flag".utf8) + [0x7F, 2, 0, 0x67, 1, 0, 0, 0]),
  ]

  @Test(arguments: Self.beginnings) func `A picture states its size`(format: PictureFormat, bytes: [UInt8]) {
    #expect(PictureFormat(ByteBuffer(bytes: bytes)) == format)
    #expect(format.size(ByteBuffer(bytes: bytes)) == PictureSize(width: 640, height: 360))
  }

  @Test(arguments: Self.beginnings)
  func `One that ends before its size has none`(format: PictureFormat, bytes: [UInt8]) {
    for count in 0..<bytes.count {
      #expect(format.size(ByteBuffer(bytes: bytes.prefix(count))) == nil, "\(count) bytes of \(format.rawValue)")
    }
  }

  @Test func `What begins otherwise is no picture`() {
    let others: [[UInt8]] = [
      [], Array("BMW makes cars, and this is a text.".utf8), [0xFF, 0xF1, 0x50, 0x80], Self.webp.dropLast(),
    ]
    for bytes in others {
      #expect(PictureFormat(ByteBuffer(bytes: bytes)) == nil)
    }
  }

  @Test func `A JPEG without a frame header has no size`() {
    // It begins again, a segment is shorter than its own length, or no marker follows.
    let broken: [[UInt8]] = [
      [0xFF, 0xD8, 0xFF, 0xD8], [0xFF, 0xD8, 0xFF, 0xE0, 0, 1, 2], [0xFF, 0xD8, 0xFF, 0xE0, 0, 2, 3, 4],
    ]
    for bytes in broken {
      #expect(PictureFormat.jpeg.size(ByteBuffer(bytes: bytes + [UInt8](repeating: 0, count: 20))) == nil)
    }
  }

  @Test func `A picture keeps its shape when it is scaled down, and none is enlarged`() {
    let most = PictureSize(width: 1920, height: 1080)
    for (width, height, shown) in [
      (1920, 1080, "1920×1080"), (1921, 1080, "1920×1078"), (4000, 3000, "1440×1080"), (3000, 4000, "810×1080"),
      (8192, 1000, "1920×234"), (321, 181, "320×180"), (2, 2, "2×2"), (1, 8192, "0×1080"),
    ] {
      #expect(PictureSize(width: width, height: height).scaled(into: most).description == shown)
    }
  }
}
