package import CLibAV
internal import Glibc
package import NIOCore

/// A libavcodec encoder: frames in, packets out. Not thread-safe; used on one thread.
package final class LibAVEncoder {
  /// One coded video or audio frame, in the encoder's time base.
  package struct Packet {
    package var presentationTime: Int64
    var decodeTime: Int64
    package var bytes: ByteBuffer
  }

  private let name: String
  private let context: UnsafeMutablePointer<AVCodecContext>
  private let packet: UnsafeMutablePointer<AVPacket>

  /// Opens an encoder by its name in libavcodec.
  ///
  /// - Parameters:
  ///   - configure: sets the context's fields before it is opened.
  ///   - options: the encoder's own options, by name.
  package init(
    _ name: String, options: [String: String],
    configure: (inout AVCodecContext) -> Void
  ) throws(LibAVError) {
    // The library's own log lines would bypass weir's log. Errors are thrown with the library's reason.
    av_log_set_level(AV_LOG_QUIET)
    guard let codec = avcodec_find_encoder_by_name(name) else {
      throw LibAVError("find the encoder \(name) in libavcodec", code: weir_averror_eof)
    }
    guard let context = avcodec_alloc_context3(codec), let packet = av_packet_alloc() else {
      throw LibAVError("make the encoder \(name)", code: -ENOMEM)
    }
    self.name = name
    self.context = context
    self.packet = packet
    context.pointee.flags |= weir_flag_global_header | weir_flag_bitexact
    configure(&context.pointee)
    for (key, value) in options {
      try LibAVError.check(
        av_opt_set(context.pointee.priv_data, key, value, 0), "set \(key)=\(value) of the encoder \(name)")
    }
    try LibAVError.check(avcodec_open2(context, codec, nil), "open the encoder \(name)")
  }

  deinit {
    var packet: UnsafeMutablePointer<AVPacket>? = packet
    av_packet_free(&packet)
    var context: UnsafeMutablePointer<AVCodecContext>? = context
    avcodec_free_context(&context)
  }

  /// Samples that each audio frame must have; 0 for video.
  var samplesPerFrame: Int { Int(context.pointee.frame_size) }

  /// Parameter sets or AudioSpecificConfig, which the encoder states separately from its packets.
  package var extradata: ByteBuffer {
    guard let bytes = context.pointee.extradata, context.pointee.extradata_size > 0 else { return ByteBuffer() }
    return ByteBuffer(bytes: UnsafeRawBufferPointer(start: bytes, count: Int(context.pointee.extradata_size)))
  }

  /// Sends a frame, or nil for the end, to the encoder. Receives all packets that are ready.
  package func encode(_ frame: UnsafeMutablePointer<AVFrame>?, _ receive: (Packet) -> Void) throws(LibAVError) {
    try LibAVError.check(avcodec_send_frame(context, frame), "give a frame to the encoder \(name)")
    while true {
      let code = avcodec_receive_packet(context, packet)
      if code == weir_averror_again || code == weir_averror_eof { return }
      try LibAVError.check(code, "take a packet from the encoder \(name)")
      defer { av_packet_unref(packet) }
      guard let data = packet.pointee.data, packet.pointee.size > 0 else { continue }
      let bytes = ByteBuffer(bytes: UnsafeRawBufferPointer(start: data, count: Int(packet.pointee.size)))
      receive(Packet(presentationTime: packet.pointee.pts, decodeTime: packet.pointee.dts, bytes: bytes))
    }
  }
}
