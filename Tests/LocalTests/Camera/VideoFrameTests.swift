import CLibAV
@testable import FMP4
import LibAV
@testable import Local
import Testing

@Suite struct VideoFrameTests {
  private typealias Plane = [[UInt8]]

  private func fill(_ image: VideoFrame, _ value: (_ plane: Int, _ row: Int, _ column: Int) -> UInt8) {
    let frame = image.frame.pointee
    let planes = [
      (frame.data.0, frame.linesize.0, 1), (frame.data.1, frame.linesize.1, 2), (frame.data.2, frame.linesize.2, 2),
    ]
    for (number, (data, stride, divisor)) in planes.enumerated() {
      for row in 0..<Int(frame.height) / divisor {
        for column in 0..<Int(frame.width) / divisor {
          data?[row * Int(stride) + column] = value(number, row, column)
        }
      }
    }
  }

  private func planes(_ image: VideoFrame) -> [Plane] {
    let frame = image.frame.pointee
    let planes = [
      (frame.data.0, frame.linesize.0, 1), (frame.data.1, frame.linesize.1, 2), (frame.data.2, frame.linesize.2, 2),
    ]
    return planes.map { data, stride, divisor in
      (0..<Int(frame.height) / divisor).map { row in
        (0..<Int(frame.width) / divisor).map { data?[row * Int(stride) + $0] ?? 0 }
      }
    }
  }

  /// Rows become columns, from the right on.
  private func clockwise(_ plane: Plane) -> Plane {
    (0..<(plane.first?.count ?? 0)).map { column in plane.reversed().map { $0[column] } }
  }

  @Test(arguments: [AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVJ420P])
  func aTurnedFrameHasEachPixelAtItsPlace(_ format: AVPixelFormat) throws {
    let image = try VideoFrame(width: 8, height: 4, format: format)
    fill(image) { plane, row, column in UInt8(plane * 100 + row * 10 + column) }
    let upright = planes(image)
    let quarter = upright.map(clockwise)
    let half = quarter.map(clockwise)
    let mirrored = upright.map { $0.map { Array($0.reversed()) } }
    for (rotation, expected) in [
      (Rotation.none, upright), (.clockwise90, quarter), (.clockwise180, half), (.clockwise270, half.map(clockwise)),
      (.mirrored, mirrored), (.mirrored90, mirrored.map(clockwise)),
      (.mirrored180, mirrored.map(clockwise).map(clockwise)),
      (.mirrored270, mirrored.map(clockwise).map(clockwise).map(clockwise)),
    ] {
      let turned = try image.turned(by: rotation)
      #expect(planes(turned) == expected, "\(rotation)")
      #expect(turned.frame.pointee.format == format.rawValue)
    }
  }

  @Test func sizesTurnWithTheirFrames() {
    let size = CameraSettings.Size(width: 1280, height: 720)
    #expect(size.turned(by: .clockwise90) == CameraSettings.Size(width: 720, height: 1280))
    #expect(size.turned(by: .clockwise180) == size && size.turned(by: .none) == size)
  }

  @Test func theTurnIsInThePixelsOrInTheTrackAndNeverInBoth() {
    var camera = CameraSettings(device: "/dev/video0", rotation: .clockwise270)
    #expect(camera.trackRotation == .clockwise270 && camera.pixelRotation == .none)
    camera.turning = .pixels
    #expect(camera.trackRotation == .none && camera.pixelRotation == .clockwise270)
  }
}
