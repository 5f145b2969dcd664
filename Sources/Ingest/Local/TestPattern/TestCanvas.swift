internal import CLibAV
internal import FMP4
internal import Glibc
internal import LibAV

/// The frame that the test pattern is drawn into, in the encoder's format (planar YUV 4:2:0). Used on one thread.
final class TestCanvas {
  let frame: UnsafeMutablePointer<AVFrame>
  private var pattern: TestFrame
  private let width: Int
  private let height: Int

  init(settings: TestSourceSettings, schedule: TestSchedule) throws(LibAVError) {
    guard let frame = av_frame_alloc() else { throw LibAVError("allocate a frame", code: -ENOMEM) }
    self.frame = frame
    (width, height) = (settings.width, settings.height)
    pattern = TestFrame(settings: settings, schedule: schedule)
    frame.pointee.format = AV_PIX_FMT_YUV420P.rawValue
    frame.pointee.width = Int32(width)
    frame.pointee.height = Int32(height)
    try LibAVError.check(av_frame_get_buffer(frame, 0), "allocate a frame of \(width)×\(height)")
    guard let luma = plane(frame.pointee.data.0, frame.pointee.linesize.0, width, height),
      let blue = plane(frame.pointee.data.1, frame.pointee.linesize.1, width / 2, height / 2),
      let red = plane(frame.pointee.data.2, frame.pointee.linesize.2, width / 2, height / 2)
    else { throw LibAVError("allocate a frame", code: -ENOMEM) }
    pattern.drawBackground(luma: luma, blue: blue, red: red, width: width, height: height)
  }

  deinit {
    var frame: UnsafeMutablePointer<AVFrame>? = frame
    av_frame_free(&frame)
  }

  /// Changes the frame to frame `number`. If the encoder still holds the last one, libav* copies it.
  func draw(_ number: Int64) throws(LibAVError) {
    try LibAVError.check(av_frame_make_writable(frame), "draw a frame")
    guard let luma = plane(frame.pointee.data.0, frame.pointee.linesize.0, width, height) else { return }
    pattern.draw(number, into: luma)
  }

  /// The frame, turned; nil where it is not to be turned.
  func turned(by rotation: Rotation) throws(LibAVError) -> VideoFrame? {
    if rotation == .none { return nil }
    let upright = try VideoFrame()
    try LibAVError.check(av_frame_ref(upright.frame, frame), "allocate a frame")
    return try upright.turned(by: rotation)
  }

  private func plane(_ data: UnsafeMutablePointer<UInt8>?, _ stride: Int32, _ width: Int, _ height: Int) -> LumaPlane? {
    guard let data else { return nil }
    return LumaPlane(
      pixels: UnsafeMutableRawBufferPointer(start: data, count: Int(stride) * height), stride: Int(stride),
      width: width, height: height)
  }
}
