package import CLibAV
internal import FMP4

/// Codecs in libavcodec: the number, and a decoder to use instead of libavcodec's own.
extension CodecID {
  var libAV: (id: AVCodecID, decoder: String?) {
    switch self {
    case .h264: (AV_CODEC_ID_H264, nil)
    case .hevc: (AV_CODEC_ID_HEVC, nil)
    case .av1: (AV_CODEC_ID_AV1, "libdav1d")  // libavcodec's own needs a graphics card
    case .vp9: (AV_CODEC_ID_VP9, nil)
    case .vp8: (AV_CODEC_ID_VP8, nil)
    case .aac: (AV_CODEC_ID_AAC, nil)
    case .ac3: (AV_CODEC_ID_AC3, nil)
    case .eac3: (AV_CODEC_ID_EAC3, nil)
    case .mpegAudio: (AV_CODEC_ID_MP3, nil)  // decodes layers I and II, too
    case .alaw: (AV_CODEC_ID_PCM_ALAW, nil)
    case .mulaw: (AV_CODEC_ID_PCM_MULAW, nil)
    case .opus: (AV_CODEC_ID_OPUS, "libopus")  // libavcodec's own delays some kinds of frames
    }
  }

  /// Nil if weir does not support the codec.
  package init?(_ id: AVCodecID) {
    guard let codec = Self.allCases.first(where: { $0.libAV.id == id }) else { return nil }
    self = codec
  }
}
