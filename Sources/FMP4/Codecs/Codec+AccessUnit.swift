package import NIOCore

extension Codec {
  /// The access unit in a payload whose NAL units stand behind their lengths, as the configuration says; nil for sound.
  package func accessUnit(_ payload: ByteBuffer) throws(CodecError) -> AccessUnit? {
    switch self {
    case .h264(let configuration): try H264.accessUnit(payload, lengthSize: configuration.lengthSize)
    case .hevc(let configuration):
      try HEVC.accessUnit(
        payload, lengthSize: configuration.lengthSize, temporalLayers: configuration.temporalLayers)
    case .av1: try AV1.accessUnit(payload)
    case .aac, .opus: nil
    }
  }

  /// The same of a payload whose NAL units stand behind start codes; AV1 has neither.
  package func accessUnit(annexB payload: ByteBuffer) throws(CodecError) -> AccessUnit? {
    switch self {
    case .h264: H264.accessUnit(annexB: payload)
    case .hevc(let configuration): HEVC.accessUnit(annexB: payload, temporalLayers: configuration.temporalLayers)
    case .av1, .aac, .opus: try accessUnit(payload)
    }
  }

  /// What parameter sets that travelled in an access unit make of the configuration; nil where they change nothing.
  package func updated(withParameterSets sets: [[UInt8]]) -> Codec? {
    guard !sets.isEmpty else { return nil }
    return switch self {
    case .h264(let configuration): configuration.updated(withParameterSets: sets).map { .h264($0) }
    case .hevc(let configuration): configuration.updated(withParameterSets: sets).map { .hevc($0) }
    case .av1(let configuration): configuration.updated(withParameterSets: sets).map { .av1($0) }
    case .aac, .opus: nil
    }
  }
}
