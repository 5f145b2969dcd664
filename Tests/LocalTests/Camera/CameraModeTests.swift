import FMP4
@testable import Local
import Testing

@Suite struct CameraModeTests {
  private func mode(_ format: CameraFormat, _ width: Int, _ height: Int, _ rate: UInt32, per: UInt32 = 1) throws
    -> CameraMode
  {
    CameraMode(
      format: format, size: CameraSettings.Size(width: width, height: height),
      rate: try #require(FrameRate(numerator: rate, denominator: per)))
  }

  /// What vivid's webcam offers, and a camera that has JPEG for what USB is too slow for.
  private func modes() throws -> [CameraMode] {
    [
      try mode(.yuyv, 320, 180, 60), try mode(.yuyv, 320, 180, 30), try mode(.yuyv, 640, 360, 30),
      try mode(.yuyv, 640, 360, 15), try mode(.yuyv, 1280, 720, 25, per: 2), try mode(.mjpeg, 1280, 720, 30),
      try mode(.mjpeg, 1920, 1080, 30), try mode(.h264, 1280, 720, 30),
    ]
  }

  @Test func theLargestThatMovesWellIsTakenWhereNothingIsAsked() throws {
    let requested = CameraSettings(device: "x")
    #expect(CameraMode.best(of: try modes(), for: requested) == (try mode(.mjpeg, 1280, 720, 30)))
    let raw = try modes().filter { $0.format == .yuyv }
    #expect(CameraMode.best(of: raw, for: requested) == (try mode(.yuyv, 640, 360, 30)))
  }

  @Test func sizeComesBeforeRateAndFormatBeforeBoth() throws {
    let small = CameraSettings(device: "x", size: CameraSettings.Size(width: 320, height: 180))
    #expect(CameraMode.best(of: try modes(), for: small) == (try mode(.yuyv, 320, 180, 30)))
    var requested = CameraSettings(device: "x", size: CameraSettings.Size(width: 1280, height: 720), format: .yuyv)
    #expect(CameraMode.best(of: try modes(), for: requested) == (try mode(.yuyv, 1280, 720, 25, per: 2)))
    requested.format = .nv12
    #expect(CameraMode.best(of: try modes(), for: requested) == nil)
  }

  @Test func aCodedStreamIsTakenOnlyWhereItIsAskedForOrAlone() throws {
    let requested = CameraSettings(device: "x", format: .h264)
    #expect(CameraMode.best(of: try modes(), for: requested)?.format == .h264)
    let alone = [try mode(.h264, 1920, 1080, 30)]
    #expect(CameraMode.best(of: alone, for: CameraSettings(device: "x")) == alone[0])
  }

  @Test func theNextQuickerRateIsBetterThanASlowerOne() throws {
    var requested = CameraSettings(device: "x", size: CameraSettings.Size(width: 320, height: 180))
    requested.frameRate = FrameRate(numerator: 50, denominator: 1)
    #expect(CameraMode.best(of: try modes(), for: requested)?.rate.framesPerSecond == 60)
    requested.frameRate = FrameRate(numerator: 120, denominator: 1)
    #expect(CameraMode.best(of: try modes(), for: requested)?.rate.framesPerSecond == 60)
  }
}
