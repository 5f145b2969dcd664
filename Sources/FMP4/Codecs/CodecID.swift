package import NIOCore

/// The codecs that weir carries, by their names alone.
package enum CodecID: Sendable, Hashable, CaseIterable {
  case h264, hevc, av1, aac, opus

  /// For people.
  package var name: String {
    switch self {
    case .h264: "H.264"
    case .hevc: "HEVC"
    case .av1: "AV1"
    case .aac: "AAC"
    case .opus: "Opus"
    }
  }

  package var kind: MediaKind {
    switch self {
    case .h264, .hevc, .av1: .video
    case .aac, .opus: .audio
    }
  }
}

extension Codec {
  package var id: CodecID {
    switch self {
    case .h264: .h264
    case .hevc: .hevc
    case .av1: .av1
    case .aac: .aac
    case .opus: .opus
    }
  }

  /// The decoder configuration record, as `init(_:record:)` reads it.
  package func record() -> [UInt8] {
    switch self {
    case .h264(let configuration): configuration.record()
    case .hevc(let configuration): configuration.record()
    case .av1(let configuration): configuration.record()
    case .aac(let configuration): configuration.audioSpecificConfig
    case .opus(let configuration): configuration.opusHead()
    }
  }

  /// Reads a decoder configuration record: avcC, hvcC, av1C, an AudioSpecificConfig or an OpusHead.
  package init(_ id: CodecID, record: ByteBuffer) throws(CodecError) {
    self =
      switch id {
      case .h264: .h264(try H264.Configuration(record: record))
      case .hevc: .hevc(try HEVC.Configuration(record: record))
      case .av1: .av1(try AV1.Configuration(record: record))
      case .aac: .aac(try AAC.Configuration(audioSpecificConfig: record))
      case .opus: .opus(try Opus.Configuration(opusHead: record))
      }
  }
}
