package import FMP4

/// Video encoders that weir knows, by their names in libavcodec. Those of one coding are in the order in which `auto`
/// tries them: hardware first.
package enum VideoEncoderName: String, Sendable, Hashable, CaseIterable {
  case h264NVENC = "h264_nvenc"
  case h264VAAPI = "h264_vaapi"
  case h264V4L2 = "h264_v4l2m2m"
  case x264 = "libx264"
  case hevcNVENC = "hevc_nvenc"
  case hevcVAAPI = "hevc_vaapi"
  case hevcV4L2 = "hevc_v4l2m2m"
  case x265 = "libx265"
  case svtAV1 = "libsvtav1"

  package var coding: CodecID {
    switch self {
    case .h264NVENC, .h264VAAPI, .h264V4L2, .x264: .h264
    case .hevcNVENC, .hevcVAAPI, .hevcV4L2, .x265: .hevc
    case .svtAV1: .av1
    }
  }

  /// Codecs that weir can encode.
  package static let codings = CodecID.allCases.filter { coding in allCases.contains { $0.coding == coding } }

  /// Encoders with the same options.
  enum Family: Sendable, Hashable {
    case x264
    case x265
    case svtAV1
    case nvenc
    case vaapi
    case v4l2
  }

  var family: Family {
    switch self {
    case .x264: .x264
    case .x265: .x265
    case .svtAV1: .svtAV1
    case .h264NVENC, .hevcNVENC: .nvenc
    case .h264VAAPI, .hevcVAAPI: .vaapi
    case .h264V4L2, .hevcV4L2: .v4l2
    }
  }

  /// Whether it needs hardware that not every machine has.
  package var isHardware: Bool {
    switch family {
    case .x264, .x265, .svtAV1: false
    case .nvenc, .vaapi, .v4l2: true
    }
  }

  /// Encoders to try: the requested one, or all of the coding for `auto`; then the software encoders.
  static func candidates(_ requested: VideoEncoderName?, coding: CodecID) -> [VideoEncoderName] {
    let all = allCases.filter { $0.coding == coding }
    guard let requested, requested.coding == coding else { return all }
    return [requested] + all.filter { !$0.isHardware && $0 != requested }
  }
}
