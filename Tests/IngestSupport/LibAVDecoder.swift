package import CLibAV
@testable internal import LibAV
package import NIOCore
internal import Testing

/// A decoder of libavcodec: the independent judge of what the encoders made.
package final class LibAVDecoder {
  private let context: UnsafeMutablePointer<AVCodecContext>
  private let frame: UnsafeMutablePointer<AVFrame>
  private let packet: UnsafeMutablePointer<AVPacket>

  package init(_ id: AVCodecID, extradata: [UInt8]) throws {
    context = try #require(avcodec_alloc_context3(avcodec_find_decoder(id)))
    frame = try #require(av_frame_alloc())
    packet = try #require(av_packet_alloc())
    let padded = extradata.count + Int(AV_INPUT_BUFFER_PADDING_SIZE)
    let memory = try #require(av_mallocz(padded))
    memory.copyMemory(from: extradata, byteCount: extradata.count)
    context.pointee.extradata = memory.assumingMemoryBound(to: UInt8.self)
    context.pointee.extradata_size = Int32(extradata.count)
    context.pointee.thread_count = 1
    try #require(avcodec_open2(context, nil, nil) == 0)
  }

  deinit {
    var (context, frame, packet) = (Optional(context), Optional(frame), Optional(packet))
    avcodec_free_context(&context)
    av_frame_free(&frame)
    av_packet_free(&packet)
  }

  /// Decodes one sample, or what is left when there are no more; gives out frames with their presentation time.
  package func decode(_ sample: (time: Int64, payload: ByteBuffer)?, _ receive: (Int64, AVFrame) -> Void) throws {
    if let sample {
      let bytes = Array(sample.payload.readableBytesView)
      try #require(av_new_packet(packet, Int32(bytes.count)) == 0)
      packet.pointee.data.update(from: bytes, count: bytes.count)
      packet.pointee.pts = sample.time
      defer { av_packet_unref(packet) }
      try #require(avcodec_send_packet(context, packet) == 0, "the decoder takes the sample at \(sample.time)")
    } else {
      try #require(avcodec_send_packet(context, nil) == 0)
    }
    while avcodec_receive_frame(context, frame) == 0 {
      #expect(frame.pointee.decode_error_flags == 0)
      receive(frame.pointee.pts, frame.pointee)
    }
  }
}
