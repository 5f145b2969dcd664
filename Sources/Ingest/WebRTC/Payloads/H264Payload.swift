internal import NIOCore

typealias H264Assembler = NALUnitAssembler<H264Payload>
typealias H264Packetizer = NALUnitPacketizer<H264Payload>

/// H.264 by RTP (RFC 6184), packetization modes 0 and 1: NAL units one by one, several in a packet (STAP-A), and in
/// fragments (FU-A).
enum H264Payload: NALUnitPayload {
  static let headerBytes = 1

  static func form(_ header: UInt8) -> NALUnitForm {
    switch header & 31 {
    case 1...23: .unit
    case 24: .aggregation
    case 28: .fragment
    default: .unknown
    }
  }

  static func use(_ header: UInt8) -> NALUnitUse {
    switch header & 31 {
    case 1...4: .slice
    case 5: .key
    case 7, 8: .parameterSet
    // Delimiters, ends, filler: a sample has none.
    case 9...12: .leftOut
    default: .other
    }
  }

  /// `first_mb_in_slice` is 0, or no slice comes first.
  static func begins(_ payload: ByteBuffer) -> Bool {
    guard let first: UInt8 = payload.getInteger(at: payload.readerIndex) else { return false }
    func second(_ offset: Int) -> UInt8 { payload.getInteger(at: payload.readerIndex + offset) ?? 0 }
    switch first & 31 {
    case 1, 5: return second(1) & 0x80 != 0
    case 6...9: return true
    case 24:
      return switch second(3) & 31 {
      case 1, 5: second(4) & 0x80 != 0
      case 6...9: true
      default: false
      }
    case 28:
      let isStart = second(1) & 0x80 != 0
      let isSlice = [1, 5].contains(second(1) & 31)
      return isStart && (!isSlice || second(2) & 0x80 != 0)
    default: return false
    }
  }

  static func unitHeader(_ header: UInt8, fragment: UInt8) -> UInt8 { header & 0xE0 | fragment & 31 }

  /// §5.7.1: the highest importance of its units.
  static func aggregationHeader(_ units: [[UInt8]]) -> [UInt8] {
    [(units.compactMap(\.first).map { $0 & 0x60 }.max() ?? 0) | 24]
  }

  static func fragmentHeaders(_ header: UInt8) -> (payload: UInt8, fragment: UInt8) {
    (header & 0xE0 | 28, header & 31)
  }
}

extension NALUnitPacketizer<H264Payload> {
  init(sps: [[UInt8]], pps: [[UInt8]]) { self.init(sets: sps + pps) }
}
