internal import FMP4

/// Codec numbers and names in FLV and Enhanced RTMP v2. Has names of unsupported codecs too, for responses and log
/// lines.
enum FLVCodecName {
  /// Supported codecs by FourCC.
  static let taken: [String: CodecID] = [
    "avc1": .h264, "hvc1": .hevc, "av01": .av1, "vp09": .vp9, "mp4a": .aac, "Opus": .opus, "ac-3": .ac3,
    "ec-3": .eac3, ".mp3": .mpegAudio,
  ]
  /// The supported codecs of a kind, in order of their FourCC.
  static func fourCCs(_ kind: MediaKind) -> [String] { taken.filter { $0.value.kind == kind }.keys.sorted() }

  /// FLV 10.1 E.4.3.1, and HEVC as some encoders send it.
  static let legacyTaken: [UInt8: CodecID] = [7: .h264, 12: .hevc]
  /// Audio formats without a configuration (E.4.2.1). 14 is MP3 at 8 kHz, which its frames state as well.
  static let legacyAudioTaken: [UInt8: CodecID] = [2: .mpegAudio, 7: .alaw, 8: .mulaw, 14: .mpegAudio]

  /// The codec of a kind with that FourCC. Nil if weir does not support it.
  static func codec(_ kind: MediaKind, fourCC: String) -> CodecID? {
    taken[fourCC].flatMap { $0.kind == kind ? $0 : nil }
  }

  /// FLV 10.1 E.4.3.1.
  static let legacyVideo: [UInt8: String] = [
    1: "JPEG", 2: "Sorenson H.263", 3: "Screen Video", 4: "VP6", 5: "VP6 with alpha", 6: "Screen Video 2",
    8: "H.263", 9: "MPEG-4 Part 2",
  ]
  /// FLV 10.1 E.4.2.1.
  static let legacyAudio: [UInt8: String] = [
    0: "PCM", 1: "ADPCM", 3: "PCM", 4: "Nellymoser", 5: "Nellymoser", 6: "Nellymoser", 11: "Speex",
  ]

  /// Usual name of an unsupported audio codec of Enhanced RTMP v2. For others, the FourCC itself.
  static func audio(fourCC: String) -> String {
    switch fourCC {
    case "fLaC": "FLAC"
    default: fourCC
    }
  }
}
