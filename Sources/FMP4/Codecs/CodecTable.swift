/// The table of codecs: each has a file and a line here.
extension CodecID {
  package var type: any CodecConfiguration.Type {
    switch self {
    case .h264: H264.Configuration.self
    case .hevc: HEVC.Configuration.self
    case .av1: AV1.Configuration.self
    case .vp9: VP9.Configuration.self
    case .vp8: VP8.Configuration.self
    case .aac: AAC.Configuration.self
    case .opus: Opus.Configuration.self
    case .ac3: AC3.Configuration.self
    case .eac3: EAC3.Configuration.self
    case .mpegAudio: MPEGAudio.Configuration.self
    case .alaw: G711.ALaw.self
    case .mulaw: G711.MuLaw.self
    }
  }
}
