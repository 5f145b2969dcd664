internal import FMP4

/// The codecs that are taken by RTP, by their names in session descriptions. What is wanted most comes first.
enum RTPCodec {
  private static let taken: [(name: String, coding: CodecID, clock: UInt32)] = [
    ("h264", .h264, 90_000), ("vp9", .vp9, 90_000), ("av1", .av1, 90_000), ("opus", .opus, 48_000),
    ("pcma", .alaw, 8000),
    ("pcmu", .mulaw, 8000),
  ]

  /// Formats that carry no media of their own.
  static let repairs: Set<String> = ["rtx", "red", "ulpfec", "flexfec-03", "cn", "telephone-event"]

  static func names(_ kind: MediaKind) -> String {
    kind == .video ? "H.264 (packetization-mode 0 or 1), VP9 and AV1" : "Opus and G.711"
  }

  static func choose(_ formats: [PayloadFormat], _ kind: MediaKind) -> (CodecID, PayloadFormat)? {
    for codec in taken where codec.coding.kind == kind {
      let fitting = formats.filter { $0.name == codec.name && $0.clock == codec.clock && isTaken($0) }
      // Without mode 1 a frame has to fit one packet for each slice.
      let best = fitting.first { codec.coding != .h264 || $0.parameter("packetization-mode") == "1" } ?? fitting.first
      if let best { return (codec.coding, best) }
    }
    return nil
  }

  private static func isTaken(_ format: PayloadFormat) -> Bool {
    switch format.name {
    case "h264": ["0", "1"].contains(format.parameter("packetization-mode") ?? "0")
    // The profile that browsers send, 4:2:0.
    case "av1": (format.parameter("profile") ?? "0") == "0"
    // 4:2:0, in 8 bits or in more.
    case "vp9": ["0", "2"].contains(format.parameter("profile-id") ?? "0")
    case "pcma", "pcmu": format.channels == 1
    default: true
    }
  }

  /// The parameters of an answer (RFC 6184 §8.2.2, RFC 7587 §7, RFC 9628 §6.1, and the AV1
  /// payload §7.3).
  static func parameters(_ coding: CodecID, _ format: PayloadFormat) -> String? {
    switch coding {
    case .h264:
      let profile = format.parameter("profile-level-id") ?? "42e01f"
      let mode = format.parameter("packetization-mode") ?? "0"
      let safe = profile.utf8.count == 6 && profile.allSatisfy(\.isHexDigit) ? profile : "42e01f"
      return "level-asymmetry-allowed=1;packetization-mode=\(mode);profile-level-id=\(safe);\(start)"
    case .av1: return start
    case .vp9: return "profile-id=\(format.parameter("profile-id") == "2" ? 2 : 0);\(start)"
    case .opus: return "minptime=10;stereo=1;sprop-stereo=1"
    default: return nil
    }
  }

  /// The bit rate that browsers begin with, in kbit/s, in place of 300.
  private static let start = "x-google-start-bitrate=2000"
}
