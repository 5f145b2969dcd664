internal import FMP4

/// What an elementary stream carries, by its stream type and its descriptors (ISO/IEC 13818-1 table 2-34, and the
/// registrations in use).
enum ElementContent: Hashable {
  /// H.264 or HEVC, with start codes.
  case video(CodecID)
  /// AAC with a header in front of each frame (ISO/IEC 13818-7 §6.2).
  case adts
  /// AAC in LOAS (ISO/IEC 14496-3 §1.7).
  case latm
  case ac3
  case eac3
  /// MP1, MP2 or MP3.
  case mpegAudio
  /// G.711 of 8 kHz and one channel, by either law, as cameras send it (GB/T 28181).
  case g711(CodecID)
  /// The number is `channel_config_code`.
  case opus(channels: UInt8)
  /// Cues of SCTE 35.
  case splices
  /// Media in a codec that weir does not take.
  case unsupported(MediaKind, name: String)
  /// Neither video nor audio.
  case data(name: String)

  init(_ type: UInt8, _ own: ElementDescriptors, inProgram: ElementDescriptors) {
    switch type {
    case 0x01, 0x02: self = .unsupported(.video, name: "MPEG-2 video")
    case 0x03, 0x04: self = .mpegAudio
    case 0x06: self = Self.privateData(own)
    case 0x0F: self = .adts
    case 0x10: self = .unsupported(.video, name: "MPEG-4 video")
    case 0x11: self = .latm
    case 0x15: self = .data(name: own.registration == "KLVA" ? "KLV" : "metadata")
    case 0x1B: self = .video(.h264)
    case 0x21: self = .unsupported(.video, name: "JPEG 2000")
    case 0x24: self = .video(.hevc)
    case 0x33: self = .unsupported(.video, name: "VVC")
    case 0x42, 0xD2: self = .unsupported(.video, name: "AVS video")
    case 0x80 where inProgram.registration == "HDMV": self = .unsupported(.audio, name: "LPCM")
    case 0x81: self = .ac3
    case 0x82 where own.registration == nil && inProgram.registration == "HDMV", 0x8A:
      self = .unsupported(.audio, name: "DTS")
    case 0x86 where inProgram.registration == "HDMV": self = .unsupported(.audio, name: "DTS-HD")
    case 0x86: self = .splices
    case 0x87, 0x84: self = .eac3
    case 0x90 where inProgram.registration != "HDMV": self = .g711(.alaw)
    case 0x91 where inProgram.registration != "HDMV": self = .g711(.mulaw)
    case 0xEA: self = .unsupported(.video, name: "VC-1")
    default: self = .data(name: "stream type 0x\(String(type, radix: 16))")
    }
  }

  /// PES packets with private data (stream type 6). Descriptors say what it is.
  private static func privateData(_ own: ElementDescriptors) -> ElementContent {
    switch own.registration {
    case "Opus": return .opus(channels: own.opusChannels ?? 2)
    case "HEVC": return .video(.hevc)
    case "AC-3": return .ac3
    case "EAC3": return .eac3
    case "AC-4": return .unsupported(.audio, name: "AC-4")
    case "BSSD": return .unsupported(.audio, name: "SMPTE 302M")
    case "DTS1", "DTS2", "DTS3": return .unsupported(.audio, name: "DTS")
    case "AV01": return .unsupported(.video, name: "AV1 in MPEG-TS")
    case "KLVA": return .data(name: "KLV")
    case "ID3 ": return .data(name: "ID3")
    case .some, nil: break
    }
    if own.tags.contains(ElementDescriptors.ac3) { return .ac3 }
    if own.tags.contains(ElementDescriptors.enhancedAC3) { return .eac3 }
    if own.tags.contains(ElementDescriptors.teletext) { return .data(name: "teletext") }
    if own.tags.contains(ElementDescriptors.subtitles) { return .data(name: "DVB subtitles") }
    return .data(name: "private data")
  }

  /// Video or audio, whether weir takes it or not. Nil for other content.
  var kind: MediaKind? {
    switch self {
    case .video: .video
    case .adts, .latm, .opus, .ac3, .eac3, .mpegAudio, .g711: .audio
    case .unsupported(let kind, _): kind
    case .splices, .data: nil
    }
  }

  /// Whether its media becomes a track.
  var isTaken: Bool {
    switch self {
    case .video, .adts, .latm, .opus, .ac3, .eac3, .mpegAudio, .g711: true
    case .splices, .unsupported, .data: false
    }
  }

  /// Name for logs and the API.
  var name: String {
    switch self {
    case .video(let coding): coding.name
    case .adts, .latm: "AAC"
    case .ac3: "AC-3"
    case .eac3: "E-AC-3"
    case .mpegAudio: "MPEG audio"
    case .g711: "G.711"
    case .opus: "Opus"
    case .splices: "SCTE-35"
    case .unsupported(_, let name), .data(let name): name
    }
  }
}
