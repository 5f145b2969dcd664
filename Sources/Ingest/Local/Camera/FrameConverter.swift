internal import CLibAV
internal import Glibc
internal import LibAV

/// Converts a camera's frames to the encoder's format: planar 4:2:0, limited range, in the encoder's size. Adds black
/// bars if the aspect ratio differs. Used on one thread.
final class FrameConverter {
  private let size: CameraSettings.Size
  private let scaler = FrameScaler(flags: Int32(SWS_BILINEAR))
  private var jpeg: JPEGDecoder?

  /// - Parameter size: of the output frames; even sides.
  init(size: CameraSettings.Size) { self.size = size }

  /// Converts a frame. Nil if the camera's bytes are incomplete or broken; the frame then counts as broken.
  func convert(_ bytes: UnsafeRawBufferPointer, mode: CameraMode, stride: Int) throws(LibAVError) -> VideoFrame? {
    let (width, height) = (mode.size.width, mode.size.height)
    let pixels: AVPixelFormat
    switch mode.format {
    case .yuyv: pixels = AV_PIX_FMT_YUYV422
    case .nv12: pixels = AV_PIX_FMT_NV12
    case .yu12: pixels = AV_PIX_FMT_YUV420P
    case .mjpeg: return try convertJPEG(bytes)
    default: return nil
    }
    let packed = mode.format == .yuyv ? 2 * width : width
    let stride = max(stride, packed)
    let chroma = mode.format == .yuyv ? 0 : (mode.format == .nv12 ? stride : stride / 2 * 2) * ((height + 1) / 2)
    guard bytes.count >= stride * height + chroma, let base = bytes.baseAddress else { return nil }
    let frame = try VideoFrame()
    let start = UnsafeMutablePointer(mutating: base.assumingMemoryBound(to: UInt8.self))
    frame.frame.pointee.width = Int32(width)
    frame.frame.pointee.height = Int32(height)
    frame.frame.pointee.format = pixels.rawValue
    frame.frame.pointee.data.0 = start
    frame.frame.pointee.linesize.0 = Int32(stride)
    if mode.format != .yuyv {
      frame.frame.pointee.data.1 = start + stride * height
      frame.frame.pointee.linesize.1 = Int32(mode.format == .nv12 ? stride : stride / 2)
    }
    if mode.format == .yu12 {
      frame.frame.pointee.data.2 = start + stride * height + stride / 2 * ((height + 1) / 2)
      frame.frame.pointee.linesize.2 = Int32(stride / 2)
    }
    return try scale(frame)
  }

  private func convertJPEG(_ bytes: UnsafeRawBufferPointer) throws(LibAVError) -> VideoFrame? {
    let decoder: JPEGDecoder
    if let jpeg { decoder = jpeg } else { decoder = try JPEGDecoder() }
    jpeg = decoder
    guard let frame = decoder.decode(bytes) else { return nil }
    return try scale(frame)
  }

  private func scale(_ frame: VideoFrame) throws(LibAVError) -> VideoFrame {
    let source = frame.frame
    let result = try VideoFrame(width: size.width, height: size.height, format: AV_PIX_FMT_YUV420P)
    let place = Self.place(
      of: CameraSettings.Size(width: Int(source.pointee.width), height: Int(source.pointee.height)), in: size)
    if place.size != size { try result.blacken() }
    let scaler = try scaler.context(
      for: source.pointee, to: (place.size.width, place.size.height), matrix: SWS_CS_ITU601)
    let planes: [UnsafePointer<UInt8>?] = [
      UnsafePointer(source.pointee.data.0), UnsafePointer(source.pointee.data.1), UnsafePointer(source.pointee.data.2),
      nil,
    ]
    let strides = [source.pointee.linesize.0, source.pointee.linesize.1, source.pointee.linesize.2, 0]
    let target = result.frame.pointee
    let (x, y) = (place.x, place.y)
    let lines = sws_scale(
      scaler, planes, strides, 0, source.pointee.height,
      [
        target.data.0.map { $0 + y * Int(target.linesize.0) + x },
        target.data.1.map { $0 + y / 2 * Int(target.linesize.1) + x / 2 },
        target.data.2.map { $0 + y / 2 * Int(target.linesize.2) + x / 2 }, nil,
      ],
      [target.linesize.0, target.linesize.1, target.linesize.2, 0])
    try LibAVError.check(lines, "convert the camera's frames")
    return result
  }

  /// Position and size of the scaled source within the target. All values are even.
  static func place(
    of source: CameraSettings.Size, in target: CameraSettings.Size
  ) -> (x: Int, y: Int, size: CameraSettings.Size) {
    let (wide, high) = (source.width * target.height, target.width * source.height)
    var size = target
    // Ignores differences of a few columns: 1366×768 video fills 1280×720.
    if wide * 100 < high * 99 {
      size.width = max(2, wide / source.height & ~1)
    } else if high * 100 < wide * 99 {
      size.height = max(2, high / source.width & ~1)
    }
    return ((target.width - size.width) / 4 * 2, (target.height - size.height) / 4 * 2, size)
  }
}
