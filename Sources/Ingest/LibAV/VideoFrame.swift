package import CLibAV
package import FMP4
internal import Glibc

/// A frame in memory that libav* reads and writes.
package final class VideoFrame {
  /// Format for JPEGs: 4:2:0 with full range.
  package static let format = AV_PIX_FMT_YUVJ420P

  package let frame: UnsafeMutablePointer<AVFrame>

  /// An empty frame for a decoder to fill.
  package init() throws(LibAVError) {
    guard let frame = av_frame_alloc() else { throw LibAVError("allocate a frame", code: -ENOMEM) }
    self.frame = frame
  }

  /// A frame with memory for its pixels. Sides are even.
  package convenience init(width: Int, height: Int, format: AVPixelFormat = VideoFrame.format) throws(LibAVError) {
    try self.init()
    frame.pointee.width = Int32(width)
    frame.pointee.height = Int32(height)
    frame.pointee.format = format.rawValue
    frame.pointee.color_range = format == Self.format ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG
    try LibAVError.check(av_frame_get_buffer(frame, 0), "allocate a frame of \(width)×\(height)")
  }

  deinit {
    var frame: UnsafeMutablePointer<AVFrame>? = frame
    av_frame_free(&frame)
  }

  /// Another frame with the same pixels. They are copied only on a write.
  package func shared() throws(LibAVError) -> VideoFrame {
    let other = try VideoFrame()
    try LibAVError.check(av_frame_ref(other.frame, frame), "allocate a frame")
    return other
  }

  /// Closed captions, which encoders write as messages of their own: triples of `cc_data` (ATSC A/53-4 §6.2.3.1).
  package var captions: [UInt8] {
    guard let found = av_frame_get_side_data(frame, AV_FRAME_DATA_A53_CC)?.pointee, let data = found.data else {
      return []
    }
    return Array(UnsafeBufferPointer(start: data, count: Int(found.size)))
  }

  package func set(captions: [UInt8]) throws(LibAVError) {
    av_frame_remove_side_data(frame, AV_FRAME_DATA_A53_CC)
    guard !captions.isEmpty else { return }
    guard let own = av_frame_new_side_data(frame, AV_FRAME_DATA_A53_CC, captions.count) else {
      throw LibAVError("allocate closed captions", code: -ENOMEM)
    }
    memcpy(own.pointee.data, captions, captions.count)
  }

  /// Makes a planar frame of limited range black.
  package func blacken() throws(LibAVError) {
    let view = frame.pointee
    var planes = [view.data.0, view.data.1, view.data.2, nil]
    let strides = [Int(view.linesize.0), Int(view.linesize.1), Int(view.linesize.2), 0]
    try LibAVError.check(
      av_image_fill_black(
        &planes, strides, AVPixelFormat(view.format), AVCOL_RANGE_MPEG, view.width, view.height),
      "make a frame black")
  }

  /// The planar 4:2:0 frame, mirrored and rotated clockwise. Returns itself without a rotation.
  package func turned(by rotation: Rotation) throws(LibAVError) -> VideoFrame {
    if rotation == .none { return self }
    let (width, height) = (Int(frame.pointee.width), Int(frame.pointee.height))
    let format = AVPixelFormat(frame.pointee.format)
    let turned =
      rotation.swapsSides
      ? try VideoFrame(width: height, height: width, format: format)
      : try VideoFrame(width: width, height: height, format: format)
    for (plane, divisor) in [1, 2, 2].enumerated() {
      guard let source = lines(plane), let target = turned.lines(plane) else { continue }
      let (columns, rows) = (width / divisor, height / divisor)
      let stride = target.stride
      // Index of the first pixel in the target, and index steps for its right and lower neighbours.
      var (start, right, below) =
        switch rotation.degrees {
        case 90: (rows - 1, stride, -1)
        case 180: ((rows - 1) * stride + columns - 1, -1, -stride)
        case 270: ((columns - 1) * stride, -stride, 1)
        default: (0, 1, stride)
        }
      if rotation.isMirrored { (start, right) = (start + (columns - 1) * right, -right) }
      for row in 0..<rows {
        let (from, to) = (source.base + row * source.stride, target.base + start + row * below)
        for column in 0..<columns { to[column * right] = from[column] }
      }
    }
    return turned
  }

  private func lines(_ plane: Int) -> (base: UnsafeMutablePointer<UInt8>, stride: Int)? {
    let data = frame.pointee.data
    let sizes = frame.pointee.linesize
    let (base, stride) =
      switch plane {
      case 0: (data.0, sizes.0)
      case 1: (data.1, sizes.1)
      default: (data.2, sizes.2)
      }
    return base.map { ($0, Int(stride)) }
  }
}
