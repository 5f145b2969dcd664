import CLibAV
import LibAV
import Testing

@Suite("Frames brought to a size and to limited range")
struct FrameScalerTests {
  private func frame(
    _ width: Int, _ height: Int, luma: UInt8 = 0, format: AVPixelFormat = AV_PIX_FMT_YUV420P, isFull: Bool = false
  ) throws -> VideoFrame {
    let frame = try VideoFrame(width: width, height: height, format: format)
    frame.frame.pointee.color_range = isFull ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG
    let (data, strides) = (frame.frame.pointee.data, frame.frame.pointee.linesize)
    for row in 0..<height {
      for column in 0..<width { data.0?[row * Int(strides.0) + column] = luma }
    }
    for row in 0..<height / 2 {
      for column in 0..<width / 2 {
        data.1?[row * Int(strides.1) + column] = 128
        data.2?[row * Int(strides.2) + column] = 128
      }
    }
    return frame
  }

  /// The brightness in the middle of a frame of 32×16 made of this one.
  private func scaled(_ source: VideoFrame, by scaler: FrameScaler) throws -> Int {
    let target = try VideoFrame(width: 32, height: 16, format: AV_PIX_FMT_YUV420P)
    let context = try scaler.context(for: source.frame.pointee, to: (32, 16), matrix: SWS_CS_ITU601)
    try LibAVError.check(sws_scale_frame(context, target.frame, source.frame), "scale")
    return Int(target.frame.pointee.data.0?[8 * Int(target.frame.pointee.linesize.0) + 16] ?? 0)
  }

  @Test(arguments: [(0, 16), (255, 235), (128, 126)] as [(UInt8, Int)])
  func `Full range becomes limited, whether the frame says so or its format's name`(_ luma: UInt8, _ made: Int) throws {
    let scaler = FrameScaler(flags: Int32(SWS_BICUBIC))
    for source in [
      try frame(64, 32, luma: luma, isFull: true), try frame(64, 32, luma: luma, format: AV_PIX_FMT_YUVJ420P),
      try frame(32, 16, luma: luma, isFull: true),
    ] {
      #expect(abs(try scaled(source, by: scaler) - made) <= 1)
    }
  }

  @Test(arguments: [16, 126, 235] as [UInt8]) func `Limited range stays as it is`(_ luma: UInt8) throws {
    let scaler = FrameScaler(flags: Int32(SWS_BICUBIC))
    #expect(abs(try scaled(try frame(64, 32, luma: luma), by: scaler) - Int(luma)) <= 1)
  }

  @Test func `What is prepared is kept for frames of the same kind`() throws {
    let scaler = FrameScaler(flags: Int32(SWS_BICUBIC))
    func context(_ frame: VideoFrame, _ size: (Int, Int) = (32, 16), matrix: Int32 = SWS_CS_ITU601) throws
      -> OpaquePointer
    {
      try scaler.context(for: frame.frame.pointee, to: size, matrix: matrix)
    }
    let source = try frame(64, 32)
    let first = try context(source)
    #expect(try context(try frame(64, 32)) == first)
    // Another kind is prepared anew and works; the one before is freed.
    _ = try context(source, (16, 8))
    _ = try context(source, matrix: SWS_CS_ITU709)
    #expect(abs(try scaled(try frame(64, 32, luma: 255, isFull: true), by: scaler) - 235) <= 1)
    #expect(abs(try scaled(try frame(64, 32, luma: 200), by: scaler) - 200) <= 1)
  }

  @Test func `A size that cannot be is refused, and the scaler works on`() throws {
    let scaler = FrameScaler(flags: Int32(SWS_BICUBIC))
    let source = try frame(64, 32, luma: 100)
    #expect(throws: LibAVError.self) {
      try scaler.context(for: source.frame.pointee, to: (0, 16), matrix: SWS_CS_ITU601)
    }
    #expect(abs(try scaled(source, by: scaler) - 100) <= 1)
  }
}
