internal import CLibAV
internal import Glibc
internal import LibAV
internal import NIOCore

/// Decodes pictures with libavcodec. What is damaged is refused, not mended.
enum PictureDecoder {
  /// Decodes the picture in these bytes, which are all of a file. One with more than `maximumPixels` is refused before
  /// memory is allocated for it.
  static func decode(
    _ bytes: ByteBuffer, _ format: PictureFormat, maximumPixels: Int
  ) throws(LibAVError) -> VideoFrame {
    // The library's own log lines would bypass weir's log. Errors are thrown with the library's reason.
    av_log_set_level(AV_LOG_QUIET)
    guard let decoder = avcodec_find_decoder(format.coding) else {
      throw LibAVError("find a decoder of \(format.rawValue) in libavcodec", code: weir_averror_eof)
    }
    var context = avcodec_alloc_context3(decoder)
    var packet = av_packet_alloc()
    defer {
      av_packet_free(&packet)
      avcodec_free_context(&context)
    }
    // A copy with libavcodec's padding after it.
    guard let context, let packet, av_new_packet(packet, Int32(clamping: bytes.readableBytes)) == 0 else {
      throw LibAVError("make a decoder of \(format.rawValue)", code: -ENOMEM)
    }
    bytes.withUnsafeReadableBytes { bytes in
      if let base = bytes.baseAddress {
        packet.pointee.data.update(from: base.assumingMemoryBound(to: UInt8.self), count: bytes.count)
      }
    }
    context.pointee.thread_count = 1
    context.pointee.max_pixels = Int64(maximumPixels)
    context.pointee.err_recognition = AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER | AV_EF_EXPLODE
    try LibAVError.check(avcodec_open2(context, decoder, nil), "open the decoder of \(format.rawValue)")
    try LibAVError.check(avcodec_send_packet(context, packet), "decode the picture")
    try LibAVError.check(avcodec_send_packet(context, nil), "decode the picture")
    let decoded = try VideoFrame()
    try LibAVError.check(avcodec_receive_frame(context, decoded.frame), "decode the picture")
    guard decoded.frame.pointee.decode_error_flags == 0 else {
      throw LibAVError("decode the picture", code: weir_error_invalid_data)
    }
    return decoded
  }
}

extension PictureFormat {
  fileprivate var coding: AVCodecID {
    switch self {
    case .png: AV_CODEC_ID_PNG
    case .jpeg: AV_CODEC_ID_MJPEG
    case .webp: AV_CODEC_ID_WEBP
    case .bmp: AV_CODEC_ID_BMP
    }
  }
}
