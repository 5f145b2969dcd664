internal import FMP4

/// The codecs that are taken by RTP, by their names in session descriptions. What is wanted most comes first: HEVC, which
/// the fewest browsers play, behind the others, and VP8 last, which has to be encoded anew.
enum RTPCodec {
  private static let taken: [(name: String, coding: CodecID, clock: UInt32)] = [
    ("h264", .h264, 90_000), ("vp9", .vp9, 90_000), ("av1", .av1, 90_000), ("h265", .hevc, 90_000),
    ("vp8", .vp8, 90_000),
    ("opus", .opus, 48_000),
    ("pcma", .alaw, 8000),
    ("pcmu", .mulaw, 8000),
  ]

  /// Formats that carry no media of their own.
  static let repairs: Set<String> = ["rtx", "red", "ulpfec", "flexfec-03", "cn", "telephone-event"]

  /// Whether codecs are taken that have to be decoded and encoded anew because of their video.
  enum Decoding { case allowed, refused }

  static func names(_ kind: MediaKind, _ decoding: Decoding) -> String {
    guard kind == .video else { return "Opus and G.711" }
    let hevc = "HEVC (Main or Main 10, one stream in decoding order)"
    return "H.264 (packetization-mode 0 or 1), VP9, AV1\(decoding == .allowed ? ", \(hevc) and VP8" : " and \(hevc)")"
  }

  static func choose(
    _ formats: [PayloadFormat], _ kind: MediaKind, _ decoding: Decoding = .allowed
  ) -> (CodecID, PayloadFormat)? {
    for codec in taken where codec.coding.kind == kind {
      if kind == .video, decoding == .refused, !codec.coding.isCarried { continue }
      let fitting = formats.filter { $0.name == codec.name && $0.clock == codec.clock && isTaken($0) }
      // Without mode 1 a frame has to fit one packet for each slice.
      let best = fitting.first { codec.coding != .h264 || $0.parameter("packetization-mode") == "1" } ?? fitting.first
      if let best { return (codec.coding, best) }
    }
    return nil
  }

  /// The payload type by which packets of a format come again (RFC 4588 §8.1), where both sides speak of lost ones.
  static func repair(of format: PayloadFormat, _ formats: [PayloadFormat]) -> UInt8? {
    guard format.feedback.contains("nack") else { return nil }
    return formats.first {
      $0.name == "rtx" && $0.clock == format.clock && $0.parameter("apt") == "\(format.payloadType)"
        && $0.payloadType != format.payloadType
    }?.payloadType
  }

  private static func isTaken(_ format: PayloadFormat) -> Bool {
    switch format.name {
    case "h264": ["0", "1"].contains(format.parameter("packetization-mode") ?? "0")
    // The profile that browsers send, 4:2:0.
    case "av1": (format.parameter("profile") ?? "0") == "0"
    case "h265": isTaken(hevc: format)
    // 4:2:0, in 8 bits or in more.
    case "vp9": ["0", "2"].contains(format.parameter("profile-id") ?? "0")
    case "pcma", "pcmu": format.channels == 1
    default: true
    }
  }

  /// Main and Main 10, whose packets have no number of the decoding order (RFC 7798 §4.4.1), in a single stream (§7.1).
  private static func isTaken(hevc format: PayloadFormat) -> Bool {
    let usual = [("profile-space", "0"), ("tx-mode", "srst"), ("sprop-max-don-diff", "0")]
    return ["1", "2"].contains(hevcProfile(format))
      && usual.allSatisfy { name, value in format.parameter(name).map { $0 == value } ?? true }
  }

  /// The parameters of an answer (RFC 6184 §8.2.2, RFC 7587 §7, RFC 7798 §7.2.2, RFC 9628 §6.1, and the AV1
  /// payload §7.3).
  static func parameters(_ coding: CodecID, _ format: PayloadFormat) -> String? {
    switch coding {
    case .h264:
      let mode = format.parameter("packetization-mode") ?? "0"
      return "level-asymmetry-allowed=1;packetization-mode=\(mode);profile-level-id=\(profile(format));\(start)"
    case .hevc: return "\(hevc(format));\(start)"
    case .av1, .vp8: return start
    case .vp9: return "profile-id=\(format.parameter("profile-id") == "2" ? 2 : 0);\(start)"
    case .opus: return "minptime=10;stereo=1;sprop-stereo=1"
    default: return nil
    }
  }

  /// `profile-level-id` of H.264, as it was offered if it is one. An answer says nothing else of an offer's text again.
  private static func profile(_ format: PayloadFormat) -> String {
    hexadecimal(format, "profile-level-id", 6) ?? "42e01f"
  }

  /// A parameter if it is so many hexadecimal digits.
  private static func hexadecimal(_ format: PayloadFormat, _ name: String, _ digits: Int) -> String? {
    guard let text = format.parameter(name), text.count == digits, text.allSatisfy({ $0.isASCII && $0.isHexDigit })
    else { return nil }
    return text
  }

  /// `profile-id` of HEVC; Main where an offer has none (RFC 7798 §7.1).
  private static func hevcProfile(_ format: PayloadFormat) -> String { format.parameter("profile-id") ?? "1" }

  /// What an answer says of HEVC as it was offered (RFC 7798 §7.2.2): all but the level is the same on both sides. A level or
  /// tier that is none is the usual one.
  private static func hevc(_ format: PayloadFormat) -> String {
    let (profile, tier) = (hevcProfile(format) == "2" ? 2 : 1, format.parameter("tier-flag") == "1" ? 1 : 0)
    let level = format.parameter("level-id").flatMap { UInt8($0) } ?? 93
    var text = "profile-id=\(profile);tier-flag=\(tier);level-id=\(level);tx-mode=SRST"
    for (name, digits) in [("profile-compatibility-indicator", 8), ("interop-constraints", 12)] {
      if let value = hexadecimal(format, name, digits) { text += ";\(name)=\(value)" }
    }
    return text
  }

  /// The bit rate that browsers begin with, in kbit/s, in place of 300.
  private static let start = "x-google-start-bitrate=2000"

  // MARK: viewers

  /// Whether viewers get the codec.
  static func isSent(_ coding: CodecID) -> Bool { [.h264, .hevc, .vp9, .av1, .opus].contains(coding) }

  /// Takes the samples of a codec apart; nil if viewers do not get it.
  static func packetizer(_ codec: Codec) -> (any RTPPacketizer)? {
    switch codec.id {
    case .h264:
      (codec.configuration as? H264.Configuration).map { H264Packetizer(sps: $0.sps, pps: $0.pps) }
    case .hevc:
      (codec.configuration as? HEVC.Configuration).map { H265Packetizer(vps: $0.vps, sps: $0.sps, pps: $0.pps) }
    case .vp9: VP9Packetizer()
    case .av1: AV1Packetizer(record: codec.record())
    case .opus: OpusPacketizer()
    default: nil
    }
  }

  /// Whether a viewer's formats have that of media that is made for it: H.264 or Opus.
  static func takesMade(_ formats: [PayloadFormat], _ kind: MediaKind) -> Bool {
    switch kind {
    case .video:
      formats.contains { $0.name == "h264" && $0.clock == 90_000 && $0.parameter("packetization-mode") == "1" }
    case .audio: formats.contains { $0.name == "opus" && $0.clock == Opus.timescale && $0.channels == 2 }
    }
  }

  /// Of a viewer's formats that for a codec; of H.264 one with the same profile, else any: decoders of browsers take all.
  static func choose(_ formats: [PayloadFormat], for codec: Codec) -> PayloadFormat? {
    let name = name(codec.id).lowercased()
    let fitting = formats.filter { $0.name == name && isTaken($0) }
    switch codec.id {
    case .h264:
      // Fragments need mode 1.
      let able = fitting.filter { $0.clock == 90_000 && $0.parameter("packetization-mode") == "1" }
      guard let own = codec.configuration as? H264.Configuration else { return able.first }
      let profile = String(own.profile, radix: 16)
      return able.first { $0.parameter("profile-level-id")?.hasPrefix(profile) == true } ?? able.first
    case .hevc:
      // "hvc1.1.6.L93.B0": of Main and Main 10 alone. What decodes Main 10 decodes Main (ITU-T H.265 §A.3.3).
      let profile = codec.codecString.split(separator: ".").dropFirst().first.map { String($0) }
      let able = fitting.filter { $0.clock == 90_000 }
      return able.first { hevcProfile($0) == profile } ?? (profile == "1" ? able.first : nil)
    case .vp9:
      let profile = codec.codecString.split(separator: ".").dropFirst().first.flatMap { Int($0) } ?? 0
      return fitting.first { $0.clock == 90_000 && Int($0.parameter("profile-id") ?? "0") == profile }
    case .av1: return fitting.first { $0.clock == 90_000 }
    case .opus: return fitting.first { $0.clock == Opus.timescale && $0.channels == 2 }
    default: return nil
    }
  }

  /// The parameters of an answer to a viewer.
  static func sentParameters(_ coding: CodecID, _ format: PayloadFormat) -> String? {
    switch coding {
    case .h264:
      return "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=\(profile(format))"
    case .hevc: return hevc(format)
    case .vp9: return "profile-id=\(format.parameter("profile-id") == "2" ? 2 : 0)"
    case .opus: return "minptime=10;sprop-stereo=1;stereo=1"
    default: return nil
    }
  }

  /// Names as their specifications write them.
  static func name(_ coding: CodecID) -> String {
    switch coding {
    case .h264: "H264"
    case .hevc: "H265"
    case .av1: "AV1"
    case .vp9: "VP9"
    case .vp8: "VP8"
    case .alaw: "PCMA"
    case .mulaw: "PCMU"
    default: "opus"
    }
  }
}
