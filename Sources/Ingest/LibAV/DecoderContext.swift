internal import CLibAV
internal import FMP4
internal import Glibc

/// How decoders of what strangers send are opened, for a key frame as for a whole stream, for pictures as for audio.
enum DecoderContext {
  /// Pixels of the largest picture that is decoded by itself: 8K with room.
  static let largestPicture = 8192 * 4608

  /// Opens libavcodec's decoder, one thread, for a track with that configuration record (avcC, hvcC, av1C,
  /// AudioSpecificConfig, OpusHead). Pictures of more pixels are refused before memory is taken for them. Whoever gets the
  /// context frees it.
  static func open(
    _ coding: CodecID, record: [UInt8], largestPicture: Int64 = 0, timescale: Int32? = nil
  ) throws(LibAVError) -> UnsafeMutablePointer<AVCodecContext> {
    // The library's own lines would bypass our log; what fails is thrown with the library's reason.
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
    if largestPicture > 0 { opened.pointee.max_pixels = largestPicture }
    // Times exclude the priming: nothing is to be left out a second time.
    opened.pointee.flags2 |= weir_flag2_skip_manual
    if coding.kind == .audio { opened.pointee.request_sample_fmt = AV_SAMPLE_FMT_FLT }
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
