package import CLibAV
internal import Glibc

/// Scales frames and converts them to planar 4:2:0 with limited range, from any range. The swscale context is kept
/// while the frames have the same format. Used on one thread.
package final class FrameScaler {
  /// Parameters of the prepared swscale context.
  private struct Purpose: Equatable {
    var width: Int32
    var height: Int32
    var format: Int32
    var isFull: Bool
    /// AVColorSpace, before and after.
    var matrix: Int32
    var targetWidth: Int32
    var targetHeight: Int32
  }

  private let flags: Int32
  private var prepared: (purpose: Purpose, context: OpaquePointer)?

  /// - Parameter flags: of swscale, such as SWS_BICUBIC.
  package init(flags: Int32) { self.flags = flags }

  deinit { sws_freeContext(prepared?.context) }

  /// The swscale context for frames like `source`.
  ///
  /// - Parameters:
  ///   - size: of the output frames, in pixels.
  ///   - matrix: AVColorSpace of both sides.
  package func context(
    for source: AVFrame, to size: (width: Int, height: Int), matrix: Int32
  ) throws(LibAVError) -> OpaquePointer {
    let isFull = source.color_range == AVCOL_RANGE_JPEG || Self.isFullByName(source.format)
    let purpose = Purpose(
      width: source.width, height: source.height, format: source.format, isFull: isFull, matrix: matrix,
      targetWidth: Int32(clamping: size.width), targetHeight: Int32(clamping: size.height))
    if let prepared, prepared.purpose == purpose { return prepared.context }
    sws_freeContext(prepared?.context)
    prepared = nil
    // swscale chooses plain copying by the range in the format's name, before the real range can be set.
    let context = sws_getContext(
      purpose.width, purpose.height, isFull ? Self.fullByName(source.format) : AVPixelFormat(source.format),
      purpose.targetWidth,
      purpose.targetHeight, AV_PIX_FMT_YUV420P, flags, nil, nil, nil)
    guard let context else {
      throw LibAVError(
        "scale frames of \(purpose.width)×\(purpose.height) to \(size.width)×\(size.height)", code: -EINVAL)
    }
    let coefficients = sws_getCoefficients(matrix)
    sws_setColorspaceDetails(context, coefficients, isFull ? 1 : 0, coefficients, 0, 0, 1 << 16, 1 << 16)
    prepared = (purpose, context)
    return context
  }

  private static func isFullByName(_ format: Int32) -> Bool {
    [AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUVJ444P].contains { $0.rawValue == format }
  }

  private static func fullByName(_ format: Int32) -> AVPixelFormat {
    switch format {
    case AV_PIX_FMT_YUV420P.rawValue: AV_PIX_FMT_YUVJ420P
    case AV_PIX_FMT_YUV422P.rawValue: AV_PIX_FMT_YUVJ422P
    case AV_PIX_FMT_YUV444P.rawValue: AV_PIX_FMT_YUVJ444P
    default: AVPixelFormat(format)
    }
  }
}
