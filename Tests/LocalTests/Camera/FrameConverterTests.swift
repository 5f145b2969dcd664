import CLibAV
import FMP4
import LibAV
@testable import Local
import NIOCore
import Testing

@Suite struct FrameConverterTests {
  private static let size = CameraSettings.Size(width: 64, height: 36)

  private func mode(_ format: CameraFormat, _ size: CameraSettings.Size = Self.size) throws -> CameraMode {
    CameraMode(format: format, size: size, rate: try #require(FrameRate(numerator: 30, denominator: 1)))
  }

  /// Luma that grows to the right and down, and even chroma, as a camera of that format lays them out.
  private func bytes(_ format: CameraFormat, _ size: CameraSettings.Size = Self.size, padding: Int = 0) -> [UInt8] {
    let (width, height) = (size.width, size.height)
    func luma(_ x: Int, _ y: Int) -> UInt8 { UInt8(20 + x + y) }
    var bytes: [UInt8] = []
    for y in 0..<height {
      for x in 0..<width {
        bytes.append(luma(x, y))
        if format == .yuyv { bytes.append(x % 2 == 0 ? 90 : 160) }
      }
      bytes += [UInt8](repeating: 255, count: padding)
    }
    switch format {
    case .nv12:
      for _ in 0..<height / 2 {
        for _ in 0..<width / 2 { bytes += [90, 160] }
        bytes += [UInt8](repeating: 255, count: padding)
      }
    case .yu12:
      for chroma in [90, 160] as [UInt8] {
        for _ in 0..<height / 2 {
          bytes += [UInt8](repeating: chroma, count: width / 2) + [UInt8](repeating: 255, count: padding / 2)
        }
      }
    default: break
    }
    return bytes
  }

  private func pixel(_ image: VideoFrame, _ x: Int, _ y: Int) -> (luma: UInt8, blue: UInt8, red: UInt8) {
    let frame = image.frame.pointee
    let chroma = y / 2 * Int(frame.linesize.1) + x / 2
    return (
      frame.data.0?[y * Int(frame.linesize.0) + x] ?? 0, frame.data.1?[chroma] ?? 0, frame.data.2?[chroma] ?? 0
    )
  }

  private func near(_ a: UInt8, _ b: Int, _ tolerance: Int = 2) -> Bool { abs(Int(a) - b) <= tolerance }

  @Test(arguments: [CameraFormat.yuyv, .nv12, .yu12], [0, 32])
  func rawFramesKeepTheirPixels(format: CameraFormat, padding: Int) throws {
    let converter = FrameConverter(size: Self.size)
    let stride = (format == .yuyv ? 2 : 1) * Self.size.width + padding
    let frame = try bytes(format, padding: padding).withUnsafeBytes {
      try converter.convert($0, mode: try mode(format), stride: stride)
    }
    let seen = pixel(try #require(frame), 40, 20)
    #expect(near(seen.luma, 80) && near(seen.blue, 90) && near(seen.red, 160), "\(seen)")
  }

  @Test func jpegsAreDecodedAndTheirRangeIsNarrowed() throws {
    let full = try VideoFrame(width: 64, height: 36)
    for plane in 0..<3 {
      let (data, stride) = [
        (full.frame.pointee.data.0, full.frame.pointee.linesize.0),
        (full.frame.pointee.data.1, full.frame.pointee.linesize.1),
        (full.frame.pointee.data.2, full.frame.pointee.linesize.2),
      ][plane]
      data?.update(repeating: plane == 0 ? 255 : 128, count: Int(stride) * (plane == 0 ? 36 : 18))
    }
    let encoder = try LibAVEncoder("mjpeg", options: [:]) { context in
      (context.width, context.height) = (64, 36)
      context.pix_fmt = AV_PIX_FMT_YUVJ420P
      context.time_base = AVRational(num: 1, den: 30)
    }
    var jpeg: [UInt8] = []
    full.frame.pointee.pts = 0
    try encoder.encode(full.frame) { jpeg = Array($0.bytes.readableBytesView) }
    let converter = FrameConverter(size: Self.size)
    let mode = try mode(.mjpeg)
    let frame = try jpeg.withUnsafeBytes { try converter.convert($0, mode: mode, stride: 0) }
    // White is 255 of full range and 235 of limited range.
    let seen = pixel(try #require(frame), 40, 20)
    #expect(near(seen.luma, 235) && near(seen.blue, 128) && near(seen.red, 128), "\(seen)")
    for broken in [[], Array(jpeg.prefix(jpeg.count / 4)), [UInt8](repeating: 7, count: 500)] as [[UInt8]] {
      let frame = try broken.withUnsafeBytes { try converter.convert($0, mode: mode, stride: 0) }
      #expect(frame == nil, "\(broken.count) bytes are no frame")
    }
    let again = try jpeg.withUnsafeBytes { try converter.convert($0, mode: mode, stride: 0) }
    #expect(again != nil, "a broken frame breaks no other")
  }

  @Test(arguments: [CameraFormat.yuyv, .nv12, .yu12])
  func tooFewBytesAreNoFrame(format: CameraFormat) throws {
    let converter = FrameConverter(size: Self.size)
    let stride = (format == .yuyv ? 2 : 1) * Self.size.width
    let short = Array(bytes(format).dropLast())
    #expect(try short.withUnsafeBytes { try converter.convert($0, mode: try mode(format), stride: stride) } == nil)
  }

  @Test func anotherShapeGetsBlackEdgesAndIsNotDrawnOut() throws {
    let square = CameraSettings.Size(width: 36, height: 36)
    let converter = FrameConverter(size: Self.size)
    let frame = try #require(
      try bytes(.yu12, square).withUnsafeBytes { try converter.convert($0, mode: try mode(.yu12, square), stride: 36) })
    #expect(pixel(frame, 2, 20).luma == 16 && pixel(frame, 61, 20).luma == 16)
    #expect(near(pixel(frame, 14 + 18, 18).luma, 20 + 18 + 18, 3) && near(pixel(frame, 32, 18).blue, 90))
    let (wide, tall) = (CameraSettings.Size(width: 1366, height: 768), CameraSettings.Size(width: 480, height: 640))
    let target = CameraSettings.Size(width: 1280, height: 720)
    #expect(FrameConverter.place(of: wide, in: target).size == target)
    let place = FrameConverter.place(of: tall, in: target)
    #expect(place.size == CameraSettings.Size(width: 540, height: 720) && place.x == 370 && place.y == 0)
  }
}
