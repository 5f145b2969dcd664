import CLibAV
import LibAV
@testable import Local
import Testing

@Suite("What is shown while a camera is away")
struct NoSignalFrameTests {
  private func luma(_ image: VideoFrame) -> [[UInt8]] {
    let frame = image.frame.pointee
    return (0..<Int(frame.height)).map { row in
      (0..<Int(frame.width)).map { frame.data.0?[row * Int(frame.linesize.0) + $0] ?? 0 }
    }
  }

  @Test(arguments: [(1280, 720), (640, 480), (360, 640), (200, 100)])
  func `White words stand in the middle of a dark image`(_ width: Int, _ height: Int) throws {
    let image = try NoSignalFrame.image(size: CameraSettings.Size(width: width, height: height))
    #expect(image.frame.pointee.format == AV_PIX_FMT_YUV420P.rawValue)
    let rows = luma(image)
    let white = rows.enumerated().flatMap { y, row in row.enumerated().filter { $1 == 235 }.map { (x: $0.offset, y: y) }
    }
    #expect(rows.allSatisfy { $0.allSatisfy { $0 == 40 || $0 == 235 } })
    // Eleven letters of six by seven dots, each a hundredth of the width.
    let dot = max(1, width / 100)
    let (left, right) = (try #require(white.map(\.x).min()), try #require(white.map(\.x).max()))
    let (top, bottom) = (try #require(white.map(\.y).min()), try #require(white.map(\.y).max()))
    #expect(bottom - top + 1 == 7 * dot && right - left + 1 >= 64 * dot && right - left < 66 * dot)
    #expect(abs(left + right - width) <= 2 * dot && abs(top + bottom - height) <= 2)
  }

  @Test func `It has no colour`() throws {
    let image = try NoSignalFrame.image(size: CameraSettings.Size(width: 64, height: 36))
    let frame = image.frame.pointee
    for row in 0..<18 {
      for column in 0..<32 {
        #expect(frame.data.1?[row * Int(frame.linesize.1) + column] == 128)
        #expect(frame.data.2?[row * Int(frame.linesize.2) + column] == 128)
      }
    }
  }

  @Test func `Words that do not fit are cut`() throws {
    let image = try NoSignalFrame.image(size: CameraSettings.Size(width: 16, height: 16))
    #expect(luma(image).flatMap(\.self).contains(235))
    let flat = try NoSignalFrame.image(size: CameraSettings.Size(width: 160, height: 2))
    #expect(flat.frame.pointee.height == 2)
  }
}
