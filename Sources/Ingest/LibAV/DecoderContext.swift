package import CLibAV
package import FMP4
internal import Glibc
internal import NIOCore

/// Opens decoders for untrusted input: a key frame or a whole stream, video or audio.
package enum DecoderContext {
  /// Most pixels of a single decoded frame: 8K with some room.
  package static let maximumPixels = 8192 * 4608

  /// Opens libavcodec's decoder with one thread, for a track with that configuration record (avcC, hvcC, av1C,
  /// AudioSpecificConfig, OpusHead). Frames with more pixels are refused before memory is allocated for them. The
  /// caller frees the context.
  package static func open(
    _ coding: CodecID, record: [UInt8], maximumPixels: Int64 = 0, timescale: Int32? = nil
  ) throws(LibAVError) -> UnsafeMutablePointer<AVCodecContext> {
    // The library's own log lines would bypass weir's log. Errors are thrown with the library's reason.
    av_log_set_level(AV_LOG_QUIET)
    let (id, preferred) = coding.libAV
    let decoder = preferred.flatMap { avcodec_find_decoder_by_name($0) } ?? avcodec_find_decoder(id)
    guard let decoder else {
      throw LibAVError("find a decoder of \(coding.name) in libavcodec", code: weir_averror_eof)
    }
    var context = avcodec_alloc_context3(decoder)
    guard let opened = context, let memory = av_mallocz(record.count + Int(AV_INPUT_BUFFER_PADDING_SIZE)) else {
      avcodec_free_context(&context)
      throw LibAVError("make a decoder of \(coding.name)", code: -ENOMEM)
    }
    opened.pointee.thread_count = 1
    if maximumPixels > 0 { opened.pointee.max_pixels = maximumPixels }
    // Times already exclude the priming, so the decoder must not skip it again.
    opened.pointee.flags2 |= weir_flag2_skip_manual
    if coding.kind == .audio { opened.pointee.request_sample_fmt = AV_SAMPLE_FMT_FLT }
    // Its bytes say neither, and libavcodec has no record of it.
    if coding == .alaw || coding == .mulaw, let audio = try? Codec(coding, record: ByteBuffer(bytes: record)).audio {
      opened.pointee.sample_rate = Int32(clamping: audio.sampleRate)
      av_channel_layout_default(&opened.pointee.ch_layout, Int32(clamping: audio.channels))
    }
    if let timescale { opened.pointee.pkt_timebase = AVRational(num: 1, den: timescale) }
    memory.copyMemory(from: record, byteCount: record.count)
    opened.pointee.extradata = memory.assumingMemoryBound(to: UInt8.self)
    opened.pointee.extradata_size = Int32(record.count)
    do throws(LibAVError) {
      try LibAVError.check(avcodec_open2(opened, decoder, nil), "open the decoder of \(coding.name)")
    } catch {
      avcodec_free_context(&context)
      throw error
    }
    return opened
  }
}
