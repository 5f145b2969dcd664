/// Picture or sound.
package enum MediaKind: String, Sendable, Hashable {
  case video
  case audio
}

/// The codecs that weir carries, each with its configuration. The set is closed: a missing case is a compile
/// error wherever it matters, never a comparison of strings.
package enum Codec: Sendable, Hashable {
  case h264(H264.Configuration)
  case hevc(HEVC.Configuration)
  case av1(AV1.Configuration)
  case aac(AAC.Configuration)
  case opus(Opus.Configuration)

  package var kind: MediaKind {
    switch self {
    case .h264, .hevc, .av1: .video
    case .aac, .opus: .audio
    }
  }
}
