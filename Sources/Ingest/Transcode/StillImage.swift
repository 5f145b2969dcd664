internal import CLibAV
internal import Glibc
internal import LibAV
internal import NIOCore

/// Makes a JPEG of one key frame: decodes it with libavcodec, scales, rotates and encodes it, on one thread. Used only
/// in workers, because the key frame is untrusted; the server uses `StillImageMaker`.
enum StillImage {
  /// Longest side of the JPEG in pixels. Smaller frames keep their size.
  static let longestSide = 640

  /// Makes the JPEG, with square pixels and upright. Throws if the bytes are not a frame of that codec, or if the frame
  /// is too large.
  static func jpeg(of still: StillImageRequest) throws(LibAVError) -> ByteBuffer {
    let decoder = try KeyFrameDecoder(
      still.codec, record: still.record, maximumPixels: DecoderContext.maximumPixels)
    let decoded = try decoder.decode(still.sample)
    let size = fitting((Int(still.width), Int(still.height)))
    return try encode(try scale(decoded, to: size).turned(by: still.rotation))
  }

  /// The largest size of the same aspect ratio within the limit. Even numbers, as 4:2:0 needs.
  static func fitting(_ size: (width: Int, height: Int)) -> (width: Int, height: Int) {
    let scale = min(1, Double(longestSide) / Double(max(size.width, size.height, 1)))
    let side = { (length: Int) in max(2, Int((Double(length) * scale / 2).rounded()) * 2) }
    return (side(size.width), side(size.height))
  }

  // MARK: The steps

  private static func scale(
    _ image: VideoFrame, to size: (width: Int, height: Int)
  ) throws(LibAVError) -> VideoFrame {
    let source = image.frame
    let scaled = try VideoFrame(width: size.width, height: size.height)
    guard
      let scaler = sws_getContext(
        source.pointee.width, source.pointee.height, AVPixelFormat(source.pointee.format), Int32(size.width),
        Int32(size.height), VideoFrame.format, Int32(SWS_AREA), nil, nil, nil)
    else { throw LibAVError("scale the frame", code: -EINVAL) }
    defer { sws_freeContext(scaler) }
    // A JPEG has full range and the matrix of BT.601 (JFIF).
    let matrix = sws_getCoefficients(Int32(source.pointee.colorspace.rawValue))
    let isFull: Int32 = source.pointee.color_range == AVCOL_RANGE_JPEG ? 1 : 0
    sws_setColorspaceDetails(scaler, matrix, isFull, sws_getCoefficients(SWS_CS_ITU601), 1, 0, 1 << 16, 1 << 16)
    let lines = sws_scale_frame(scaler, scaled.frame, source)
    try LibAVError.check(lines, "scale the frame")
    return scaled
  }

  private static func encode(_ image: VideoFrame) throws(LibAVError) -> ByteBuffer {
    let encoder = try LibAVEncoder("mjpeg", options: [:]) { context in
      context.width = image.frame.pointee.width
      context.height = image.frame.pointee.height
      context.pix_fmt = VideoFrame.format
      context.color_range = AVCOL_RANGE_JPEG
      context.time_base = AVRational(num: 1, den: 25)
      context.flags |= weir_flag_qscale
      context.global_quality = Self.quality
      context.thread_count = 1
    }
    image.frame.pointee.quality = Self.quality
    var jpeg = ByteBuffer()
    try encoder.encode(image.frame) { jpeg = $0.bytes }
    try encoder.encode(nil) { jpeg = $0.bytes }
    guard jpeg.readableBytes > 0 else { throw LibAVError("encode the frame", code: weir_averror_eof) }
    return jpeg
  }

  /// Quantiser 4 (2 is the best, 31 the worst) in libavcodec's units: some 40 KB for 640×360.
  private static let quality = 4 * FF_QP2LAMBDA
}
