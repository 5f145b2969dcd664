internal import CLibAV
internal import FMP4
internal import Glibc
internal import LibAV
internal import NIOCore

/// A libavcodec decoder for one key frame. Not thread-safe; used on one thread.
final class KeyFrameDecoder {
  private let context: UnsafeMutablePointer<AVCodecContext>

  /// A frame of more than `maximumPixels` is refused before memory is allocated for it.
  init(_ coding: CodecID, record: [UInt8], maximumPixels: Int) throws(LibAVError) {
    context = try DecoderContext.open(coding, record: record, maximumPixels: Int64(maximumPixels))
  }

  deinit {
    var context: UnsafeMutablePointer<AVCodecContext>? = context
    avcodec_free_context(&context)
  }

  /// Decodes the frame in a sync sample.
  func decode(_ sample: ByteBuffer) throws(LibAVError) -> VideoFrame {
    var packet = av_packet_alloc()
    defer { av_packet_free(&packet) }
    guard let packet, av_new_packet(packet, Int32(clamping: sample.readableBytes)) == 0 else {
      throw LibAVError("hold a key frame of \(sample.readableBytes) bytes", code: -ENOMEM)
    }
    sample.withUnsafeReadableBytes { bytes in
      if let base = bytes.baseAddress {
        packet.pointee.data.update(from: base.assumingMemoryBound(to: UInt8.self), count: bytes.count)
      }
    }
    packet.pointee.flags |= AV_PKT_FLAG_KEY
    try LibAVError.check(avcodec_send_packet(context, packet), "decode the key frame")
    try LibAVError.check(avcodec_send_packet(context, nil), "decode the key frame")
    let decoded = try VideoFrame()
    try LibAVError.check(avcodec_receive_frame(context, decoded.frame), "decode the key frame")
    return decoded
  }
}
