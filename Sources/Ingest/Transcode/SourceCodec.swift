internal import FMP4

extension TranscodeConfiguration.SourceCodec {
  /// What a worker is told of a codec: its number and its decoder configuration record. Nil for sound.
  static func told(of codec: Codec) -> (codec: Self, record: [UInt8])? {
    switch codec {
    case .h264(let configuration): (.h264, configuration.record())
    case .hevc(let configuration): (.hevc, configuration.record())
    case .av1(let configuration): (.av1, configuration.record())
    case .aac, .opus: nil
    }
  }

  /// Which decoder that is.
  var coding: CodecID {
    switch self {
    case .h264: .h264
    case .hevc: .hevc
    case .av1: .av1
    }
  }
}
