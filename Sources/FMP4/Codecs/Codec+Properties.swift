/// What playlists, logs and pages tell about a codec.
extension Codec {
  /// For the CODECS attribute and media types (RFC 6381).
  package var codecString: String {
    switch self {
    case .h264(let configuration): configuration.codecString
    case .hevc(let configuration): configuration.codecString
    case .av1(let configuration): configuration.codecString
    case .aac(let configuration): configuration.codecString
    case .opus(let configuration): configuration.codecString
    }
  }

  /// For people.
  package var name: String {
    switch self {
    case .h264: "H.264"
    case .hevc: "HEVC"
    case .av1: "AV1"
    case .aac(let configuration): configuration.profile == .lowComplexity ? "AAC" : "HE-AAC"
    case .opus: "Opus"
    }
  }

  /// What the parameter sets say about the pictures; nil for sound.
  package var picture: PictureFormat? {
    switch self {
    case .h264(let configuration): configuration.picture
    case .hevc(let configuration): configuration.picture
    case .av1(let configuration): configuration.picture
    case .aac, .opus: nil
    }
  }

  /// In square samples, before any rotation; nil for sound.
  package var displaySize: (width: Int, height: Int)? { picture?.displaySize }

  /// In coded samples after cropping; nil for sound.
  package var codedSize: (width: Int, height: Int)? { picture.map { ($0.width, $0.height) } }

  /// As the stream states it; nil for sound and where it does not.
  package var frameRate: FrameRate? { picture?.frameRate }

  /// Hz and channels of the output; nil for picture.
  package var audio: (sampleRate: UInt32, channels: Int)? {
    switch self {
    case .h264, .hevc, .av1: nil
    case .aac(let configuration): (configuration.samplingFrequency, configuration.channels)
    case .opus(let configuration): (Opus.timescale, configuration.channels)
    }
  }
}
