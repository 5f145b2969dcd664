internal import CLibAV
internal import Glibc
internal import NIOCore

/// One key frame as a JPEG: decoded by libavcodec, scaled, turned and encoded, on one thread. For a worker alone, since
/// strangers send the key frame; the server asks `StillImageMaker`.
enum StillImage {
  /// Neither side of the JPEG is longer; smaller pictures stay as they are.
  static let longestSide = 640

  /// The JPEG has square pixels, and is upright. Throws when the bytes are no picture of that codec, or one that is too
  /// large.
  static func jpeg(of still: StillImageRequest) throws(LibAVError) -> ByteBuffer {
    let decoder = try KeyFrameDecoder(
      still.codec, record: still.record, largestPicture: DecoderContext.largestPicture)
    let decoded = try decoder.decode(still.sample)
    let size = fitting((Int(still.width), Int(still.height)))
    return try encode(try scale(decoded, to: size).turned(by: still.rotation))
  }

  /// The largest size of the same shape within the limit, in even numbers, as 4:2:0 needs them.
  static func fitting(_ size: (width: Int, height: Int)) -> (width: Int, height: Int) {
    let scale = min(1, Double(longestSide) / Double(max(size.width, size.height, 1)))
    let side = { (length: Int) in max(2, Int((Double(length) * scale / 2).rounded()) * 2) }
    return (side(size.width), side(size.height))
  }

  // MARK: The steps

  private static func scale(
    _ picture: VideoFrame, to size: (width: Int, height: Int)
  ) throws(LibAVError) -> VideoFrame {
    let source = picture.frame
    let scaled = try VideoFrame(width: size.width, height: size.height)
    guard
      let scaler = sws_getContext(
        source.pointee.width, source.pointee.height, AVPixelFormat(source.pointee.format), Int32(size.width),
        Int32(size.height), VideoFrame.format, Int32(SWS_AREA), nil, nil, nil)
    else { throw LibAVError("scale the picture", code: -EINVAL) }
    defer { sws_freeContext(scaler) }
    // A JPEG is of full range, and its matrix that of BT.601 (JFIF).
    let matrix = sws_getCoefficients(Int32(source.pointee.colorspace.rawValue))
    let isFull: Int32 = source.pointee.color_range == AVCOL_RANGE_JPEG ? 1 : 0
    sws_setColorspaceDetails(scaler, matrix, isFull, sws_getCoefficients(SWS_CS_ITU601), 1, 0, 1 << 16, 1 << 16)
    let lines = sws_scale_frame(scaler, scaled.frame, source)
    try LibAVError.check(lines, "scale the picture")
    return scaled
  }

  private static func encode(_ picture: VideoFrame) throws(LibAVError) -> ByteBuffer {
    let encoder = try LibAVEncoder("mjpeg", options: [:]) { context in
      context.width = picture.frame.pointee.width
      context.height = picture.frame.pointee.height
      context.pix_fmt = VideoFrame.format
      context.color_range = AVCOL_RANGE_JPEG
      context.time_base = AVRational(num: 1, den: 25)
      context.flags |= weir_flag_qscale
      context.global_quality = Self.quality
      context.thread_count = 1
    }
    picture.frame.pointee.quality = Self.quality
    var jpeg = ByteBuffer()
    try encoder.encode(picture.frame) { jpeg = $0.bytes }
    try encoder.encode(nil) { jpeg = $0.bytes }
    guard jpeg.readableBytes > 0 else { throw LibAVError("encode the picture", code: weir_averror_eof) }
    return jpeg
  }

  /// A quantiser of 4 (2 is the best, 31 the worst) in libavcodec's steps: some 40 KB for 640×360.
  private static let quality = 4 * FF_QP2LAMBDA
}
