internal import CLibAV
internal import FMP4
internal import Glibc
internal import LibAV
internal import NIOCore

/// A libavcodec decoder for a source's video or audio, with the packet that feeds it. Used on one thread.
final class PacketDecoder {
  private let context: UnsafeMutablePointer<AVCodecContext>
  private let packet: UnsafeMutablePointer<AVPacket>
  private let coding: CodecID

  /// `maximumPixels`: most pixels of a frame; 0 for audio. `timescale` is that of the input times.
  init(
    _ coding: CodecID, record: [UInt8], maximumPixels: Int64 = 0, timescale: UInt32
  ) throws(LibAVError) {
    guard let packet = av_packet_alloc() else {
      throw LibAVError("make a decoder of \(coding.name)", code: -ENOMEM)
    }
    do throws(LibAVError) {
      context = try DecoderContext.open(
        coding, record: record, maximumPixels: maximumPixels, timescale: Int32(clamping: timescale))
    } catch {
      var packet: UnsafeMutablePointer<AVPacket>? = packet
      av_packet_free(&packet)
      throw error
    }
    self.packet = packet
    self.coding = coding
  }

  deinit {
    var packet: UnsafeMutablePointer<AVPacket>? = packet
    av_packet_free(&packet)
    var context: UnsafeMutablePointer<AVCodecContext>? = context
    avcodec_free_context(&context)
  }

  /// Sends the next access unit and returns libavcodec's code. Throws if no memory is left for it.
  func send(_ unit: TranscodeRequest.SourceFrame) throws(LibAVError) -> Int32 {
    let size = unit.payload.readableBytes
    guard av_new_packet(packet, Int32(clamping: size)) == 0 else {
      throw LibAVError("hold \(size) bytes of \(coding.name)", code: -ENOMEM)
    }
    defer { av_packet_unref(packet) }
    unit.payload.withUnsafeReadableBytes { bytes in
      if let base = bytes.baseAddress {
        packet.pointee.data.update(from: base.assumingMemoryBound(to: UInt8.self), count: bytes.count)
      }
    }
    packet.pointee.pts = unit.presentationTime
    packet.pointee.dts = unit.decodeTime
    if unit.isSync { packet.pointee.flags |= AV_PKT_FLAG_KEY }
    return avcodec_send_packet(context, packet)
  }

  /// Sends the end of the stream and returns libavcodec's code.
  func sendEnd() -> Int32 { avcodec_send_packet(context, nil) }

  /// Receives the next decoded frame and returns libavcodec's code.
  func receive(_ frame: UnsafeMutablePointer<AVFrame>) -> Int32 { avcodec_receive_frame(context, frame) }

  /// Resets the decoder after the end, for new input.
  func flush() { avcodec_flush_buffers(context) }
}
