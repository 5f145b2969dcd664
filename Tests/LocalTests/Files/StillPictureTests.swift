import CLibAV
import FMP4
import Glibc
import LibAV
@testable import Local
import NIOCore
import Support
import Testing

@Suite("A picture that was encoded once")
struct StillPictureTests {
  @Test func `A PNG becomes two seconds of video with a key frame each second`() throws {
    let file = try TemporaryFile(PictureBytes.png(width: 321, height: 181, grey: PictureBytes.tiles))
    let picture = try StillPicture(path: file.path)
    #expect(picture.tracks.map(\.id) == [.video, .audio] && picture.tracks.map(\.timescale) == [30_000, 48_000])
    #expect(picture.tracks.map(\.frameDuration) == [3_000, nil])
    let format = try #require(picture.tracks[0].codec.videoFormat)
    #expect(format.width == 320 && format.height == 180, "sides are even")
    #expect(picture.video.map(\.decodeTime) == (0..<20).map { $0 * 3_000 })
    #expect(picture.video.allSatisfy { $0.compositionOffset == 0 && $0.duration == 3_000 && $0.track == .video })
    #expect(picture.video.map(\.isSync) == (0..<20).map { $0 % 10 == 0 })
    let sizes = picture.video.map(\.payload.readableBytes)
    #expect(zip(sizes, picture.video).allSatisfy { $1.isSync || $0 < sizes[0] / 10 }, "\(sizes)")
    let decoded = try DecodedStill(picture)
    #expect(decoded.frames.map(\.time) == (0..<40).map { $0 * 3_000 })
    #expect(decoded.frames.allSatisfy { $0.size == PictureSize(width: 320, height: 180) })
  }

  @Test func `Its audio is silence that can follow itself`() throws {
    let file = try TemporaryFile(PictureBytes.png(width: 16, height: 16) { _, _ in 0 })
    let picture = try StillPicture(path: file.path)
    #expect(picture.tracks[1].codec.audio?.sampleRate == 48_000 && picture.tracks[1].codec.audio?.channels == 2)
    #expect(picture.silence.duration == 1024 && picture.silence.isSync && picture.silence.track == .audio)
    #expect(picture.silence.payload.readableBytes < 100)
    #expect(try DecodedStill(picture).loudest < 1e-4)
  }

  @Test(arguments: [(UInt8(255), 235), (128, 126), (0, 16)])
  func `Grey keeps its brightness`(grey: UInt8, luma: Int) throws {
    let file = try TemporaryFile(PictureBytes.png(width: 64, height: 36) { _, _ in grey })
    let decoded = try DecodedStill(try StillPicture(path: file.path), column: 20, row: 20)
    #expect(decoded.pixels.count == 40 && decoded.pixels.allSatisfy { $0.isNear(luma, 128, 128) })
  }

  @Test func `Colours are those of BT 709`() throws {
    let file = try TemporaryFile(PictureBytes.bmp(width: 65, height: 37, [0, 0, 255]))
    let picture = try StillPicture(path: file.path)
    let format = try #require(picture.tracks[0].codec.videoFormat)
    #expect(format.width == 64 && format.height == 36 && format.color?.matrix == 1)
    let decoded = try DecodedStill(picture, column: 20, row: 20)
    #expect(decoded.pixels.allSatisfy { $0.isNear(63, 102, 240) }, "\(decoded.pixels[0])")
  }

  @Test(arguments: [(UInt8(1), 0), (3, 180), (6, 90), (8, 270)])
  func `A photograph stands upright as its Exif says`(orientation: UInt8, degrees: Int) throws {
    var jpeg = try whiteAndBlack()
    // One entry: the orientation, a short number.
    let entry: [UInt8] = [0x12, 1, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0]
    let tiff: [UInt8] = Array("II*".utf8) + [0, 8, 0, 0, 0, 1, 0] + entry + [0, 0, 0, 0]
    jpeg.insert(contentsOf: [0xFF, 0xE1, 0, 34] + Array("Exif".utf8) + [0, 0] + tiff, at: 2)
    let file = try TemporaryFile(jpeg)
    let picture = try StillPicture(path: file.path)
    let isTurned = degrees % 180 == 90
    let format = try #require(picture.tracks[0].codec.videoFormat)
    #expect(format.width == (isTurned ? 32 : 64) && format.height == (isTurned ? 64 : 32))
    #expect(format.color?.matrix == 6, "what JFIF says: BT.601")
    // The white half is on the left, above, on the right, below.
    let first = try DecodedStill(picture, column: 8, row: 8)
    let last = try DecodedStill(picture, column: isTurned ? 24 : 56, row: isTurned ? 56 : 24)
    let isFirst = degrees < 180
    #expect(first.pixels.allSatisfy { $0.isNear(isFirst ? 235 : 16, 128, 128) })
    #expect(last.pixels.allSatisfy { $0.isNear(isFirst ? 16 : 235, 128, 128) })
  }

  @Test func `A JPEG that ends early is refused`() throws {
    let jpeg = try whiteAndBlack()
    for count in [10, jpeg.count / 2, jpeg.count - 20] {
      let file = try TemporaryFile(Array(jpeg.prefix(count)))
      #expect {
        _ = try StillPicture(path: file.path)
      } throws: { error in
        if case FallbackError.damaged(file.path, .jpeg, _) = error { true } else { false }
      }
    }
  }

  /// A JPEG of 64×32 pixels, white on the left and black on the right.
  private func whiteAndBlack() throws -> [UInt8] {
    let frame = try VideoFrame(width: 64, height: 32)
    let (data, strides) = (frame.frame.pointee.data, frame.frame.pointee.linesize)
    for row in 0..<32 {
      for column in 0..<64 { data.0?[row * Int(strides.0) + column] = column < 32 ? 255 : 0 }
    }
    data.1?.update(repeating: 128, count: Int(strides.1) * 16)
    data.2?.update(repeating: 128, count: Int(strides.2) * 16)
    let encoder = try LibAVEncoder("mjpeg", options: [:]) { context in
      (context.width, context.height) = (64, 32)
      context.pix_fmt = AV_PIX_FMT_YUVJ420P
      context.time_base = AVRational(num: 1, den: 30)
    }
    var jpeg: [UInt8] = []
    frame.frame.pointee.pts = 0
    try encoder.encode(frame.frame) { jpeg = Array($0.bytes.readableBytesView) }
    return jpeg
  }

  @Test func `A picture with more than 8192 pixels a side is refused by its header`() throws {
    for (width, height) in [(60_000, 60_000), (8_193, 16), (16, .max)] as [(UInt32, UInt32)] {
      let file = try TemporaryFile(PictureBytes.png(width: width, height: height, data: [1, 2, 3]))
      #expect(
        throws: FallbackError.tooManyPixels(file.path, PictureSize(width: Int(width), height: Int(height)))
      ) { _ = try StillPicture(path: file.path) }
    }
    let within = try TemporaryFile(PictureBytes.png(width: 8_192, height: 8_192, data: [1, 2, 3]))
    #expect {
      _ = try StillPicture(path: within.path)
    } throws: { error in
      if case FallbackError.damaged(within.path, .png, _) = error { true } else { false }
    }
  }

  @Test func `A picture that is too small is refused`() throws {
    let sizes: [(UInt32, UInt32, String)] = [(15, 16, "14×16"), (16, 0, "16×0"), (8_192, 16, "1920×2")]
    for (width, height, shown) in sizes {
      let file = try TemporaryFile(PictureBytes.png(width: width, height: height, data: [1, 2, 3]))
      #expect {
        _ = try StillPicture(path: file.path)
      } throws: { error in
        if case FallbackError.tooSmall(file.path, let size) = error { size.description == shown } else { false }
      }
    }
  }

  @Test func `A picture that ends early is refused`() throws {
    let pictures = [
      PictureBytes.png(width: 64, height: 36, grey: PictureBytes.tiles),
      PictureBytes.bmp(width: 64, height: 36, [1, 2, 3]),
    ]
    for whole in pictures {
      for count in [20, 26, 60, whole.count / 2, whole.count - 100] {
        let file = try TemporaryFile(Array(whole.prefix(count)))
        #expect {
          _ = try StillPicture(path: file.path)
        } throws: { error in
          guard case FallbackError.damaged(file.path, _, let reason) = error else { return false }
          return !reason.isEmpty && "\(error)".contains("damaged")
        }
      }
    }
  }

  @Test func `What is no picture at all is refused with the reason`() throws {
    let empty = try TemporaryFile([])
    #expect(throws: FallbackError.empty(empty.path)) { _ = try StillPicture(path: empty.path) }
    let text = try TemporaryFile(Array("This is no picture.\n".utf8))
    #expect(throws: FallbackError.noPicture(text.path)) { _ = try StillPicture(path: text.path) }
    #expect(throws: FileError.noFile("/tmp")) { _ = try StillPicture(path: "/tmp") }
    #expect(throws: FileError.noFile("/dev/null")) { _ = try StillPicture(path: "/dev/null") }
    #expect(throws: FileError.unreadable("/tmp/weir-none.png", code: ENOENT)) {
      _ = try StillPicture(path: "/tmp/weir-none.png")
    }
  }

  @Test func `A file of more than 32 MiB is not read`() throws {
    let file = try TemporaryFile(PictureBytes.png(width: 16, height: 16) { _, _ in 0 })
    let size = 32 << 20
    try #require(truncate(file.path, size + 1) == 0)
    #expect(throws: FallbackError.tooLarge(file.path, bytes: size + 1)) { _ = try StillPicture(path: file.path) }
    try #require(truncate(file.path, size) == 0)
    #expect(try StillPicture(path: file.path).video.count == 20, "what follows the picture means nothing")
  }

  @Test func `The test card is the first frame of the test pattern`() throws {
    var settings = TestSourceSettings(width: 320, height: 180, frameRate: .init(timescale: 25_000, frameDuration: 1000))
    let decoded = try DecodedStill(try StillPicture(testCard: settings, at: PatternClock.wallStart))
    #expect(decoded.numbers == Array(repeating: 0, count: 40))
    #expect(decoded.frames.allSatisfy { $0.size == PictureSize(width: 320, height: 180) })
    settings.rotation = .clockwise90
    let turned = try #require(try StillPicture(testCard: settings).tracks[0].codec.videoFormat)
    #expect(turned.width == 180 && turned.height == 320)
  }
}
