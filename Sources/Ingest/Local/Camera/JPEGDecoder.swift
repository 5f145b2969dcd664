internal import CLibAV
internal import Glibc
internal import LibAV

/// Decodes the frames of a camera that sends JPEGs. Used on one thread.
final class JPEGDecoder {
  private let context: UnsafeMutablePointer<AVCodecContext>
  private let packet: UnsafeMutablePointer<AVPacket>

  init() throws(LibAVError) {
    guard let decoder = avcodec_find_decoder(AV_CODEC_ID_MJPEG), let context = avcodec_alloc_context3(decoder),
      let packet = av_packet_alloc()
    else { throw LibAVError("make a decoder of JPEG", code: -ENOMEM) }
    self.context = context
    self.packet = packet
    context.pointee.thread_count = 1
    context.pointee.max_pixels = Int64(DecoderContext.maximumPixels)
    try LibAVError.check(avcodec_open2(context, decoder, nil), "open the decoder of JPEG")
  }

  deinit {
    var packet: UnsafeMutablePointer<AVPacket>? = packet
    av_packet_free(&packet)
    var context: UnsafeMutablePointer<AVCodecContext>? = context
    avcodec_free_context(&context)
  }

  /// Nil if the frame is incomplete. Cables and buses sometimes lose data.
  func decode(_ bytes: UnsafeRawBufferPointer) -> VideoFrame? {
    guard let base = bytes.baseAddress, bytes.count > 0, let frame = try? VideoFrame() else { return nil }
    // A copy with libavcodec's padding after it.
    guard av_new_packet(packet, Int32(clamping: bytes.count)) == 0 else { return nil }
    defer { av_packet_unref(packet) }
    packet.pointee.data.update(from: base.assumingMemoryBound(to: UInt8.self), count: bytes.count)
    guard avcodec_send_packet(context, packet) >= 0, avcodec_receive_frame(context, frame.frame) >= 0,
      frame.frame.pointee.decode_error_flags == 0
    else { return nil }
    return frame
  }
}
