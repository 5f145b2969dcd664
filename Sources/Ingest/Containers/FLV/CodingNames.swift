extension FLVVideoTag.Coding {
  var name: String {
    switch self {
    case .h264: "H.264"
    case .hevc: "HEVC"
    case .av1: "AV1"
    }
  }
}

extension FLVAudioTag.Coding {
  var name: String {
    switch self {
    case .aac: "AAC"
    case .opus: "Opus"
    }
  }
}
