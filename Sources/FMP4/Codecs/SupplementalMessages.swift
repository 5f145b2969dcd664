/// Reads supplemental enhancement information (ITU-T H.264 annex D, H.265 annex D). Unreadable messages are ignored.
struct SupplementalMessages: Sendable {
  /// Bytes of a NAL unit that are read. The messages weir needs are short and precede the long ones.
  static let limit = 512

  /// Decoding can start here at once: a recovery point of H.264 with `recovery_frame_cnt` 0 (§D.2.8). It marks an open
  /// GOP whose key frame is not an IDR. A count above 0 is a gradual refresh: the first decoded frames are incomplete.
  private(set) var isRecoveryPoint = false
  /// A recovery point from which the picture becomes whole little by little (H.264 §D.2.8, H.265 §D.3.8).
  private(set) var isGradualRefresh = false
  /// H.264 §D.1.29, H.265 §D.2.28.
  private(set) var masteringDisplay: MasteringDisplay?
  /// H.264 §D.1.31, H.265 §D.2.35.
  private(set) var lightLevel: ContentLightLevel?

  /// Closed captions, in user data that ITU-T T.35 registers (H.264 §D.1.6, H.265 §D.2.6).
  private(set) var captions = CaptionServices()

  /// Payload types, the same in both standards.
  private enum Kind: Int {
    case userData = 4
    case recoveryPoint = 6
    case masteringDisplay = 137
    case lightLevel = 144
  }

  /// Reads a NAL unit of messages, or its beginning. `headerLength` is 1 for H.264 and 2 for HEVC.
  mutating func read(_ unit: [UInt8], headerLength: Int) {
    var reader = BitReader(nalUnit: unit, headerLength: headerLength)
    while reader.remaining >= 24, let type = try? Self.number(&reader), let size = try? Self.number(&reader) {
      var message = reader
      switch Kind(rawValue: type) {
      case .userData: captions.read(userData: message)
      case .recoveryPoint:
        if headerLength == 1, let count = try? message.ue("recovery_frame_cnt") {
          if count == 0 { isRecoveryPoint = true } else { isGradualRefresh = true }
        } else if headerLength == 2, let count = try? message.se("recovery_poc_cnt"), count > 0 {
          isGradualRefresh = true
        }
      case .masteringDisplay: masteringDisplay = (try? MasteringDisplay(&message)) ?? masteringDisplay
      case .lightLevel: lightLevel = (try? ContentLightLevel(&message)) ?? lightLevel
      case nil: break
      }
      guard (try? reader.skip(size &* 8)) != nil else { return }
    }
  }

  /// A payload type or size: bytes of 255, then the rest.
  private static func number(_ reader: inout BitReader) throws(CodecError) -> Int {
    var number = 0
    while true {
      let byte = Int(try reader.bits(8))
      number &+= byte
      if byte != 255 { return number }
    }
  }
}

extension MasteringDisplay {
  fileprivate init(_ reader: inout BitReader) throws(CodecError) {
    func chromaticity(_ reader: inout BitReader) throws(CodecError) -> Chromaticity {
      Chromaticity(
        x: UInt16(truncatingIfNeeded: try reader.bits(16)), y: UInt16(truncatingIfNeeded: try reader.bits(16)))
    }
    let green = try chromaticity(&reader)
    let blue = try chromaticity(&reader)
    let red = try chromaticity(&reader)
    self.init(
      red: red, green: green, blue: blue, white: try chromaticity(&reader), maximumLuminance: try reader.bits(32),
      minimumLuminance: try reader.bits(32))
  }
}

extension ContentLightLevel {
  fileprivate init(_ reader: inout BitReader) throws(CodecError) {
    self.init(
      maximum: UInt16(truncatingIfNeeded: try reader.bits(16)),
      maximumAverage: UInt16(truncatingIfNeeded: try reader.bits(16)))
  }
}
