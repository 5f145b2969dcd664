internal import FMP4
internal import NIOCore

typealias H265Assembler = NALUnitAssembler<H265Payload>
typealias H265Packetizer = NALUnitPacketizer<H265Payload>

/// HEVC by RTP (RFC 7798) in decoding order: NAL units one by one, several in a packet (AP, §4.4.2), and in fragments (FU,
/// §4.4.3). Senders whose packets have numbers of that order (DONL) are not taken by their offers.
enum H265Payload: NALUnitPayload {
  static let headerBytes = 2
  private static let (aggregation, fragment): (UInt8, UInt8) = (48, 49)

  /// `nal_unit_type` (ITU-T H.265 §7.3.1.2).
  private static func unitType(_ header: UInt8) -> UInt8 { header >> 1 & 63 }

  static func form(_ header: UInt8) -> NALUnitForm {
    switch unitType(header) {
    case 0..<aggregation: .unit
    case aggregation: .aggregation
    case fragment: .fragment
    // Packets with extensions of the header (PACI, §4.4.4), and what no version of the format has.
    default: .unknown
    }
  }

  /// As `HEVC` keeps units of samples (ITU-T H.265 table 7-1, ISO/IEC 14496-15 §8.3.2).
  static func use(_ header: UInt8) -> NALUnitUse {
    switch unitType(header) {
    case 0..<16: .slice
    case 16...21: .key
    case 32...34: .parameterSet
    // Delimiters and filler: a sample has none. The end of a sequence stays, as it changes what follows.
    case 35, 38: .leftOut
    case aggregation...63: .unknown
    default: .other
    }
  }

  /// `first_slice_segment_in_pic_flag` is set, or no slice comes first (ITU-T H.265 §7.4.2.4.4).
  static func begins(_ payload: ByteBuffer) -> Bool {
    guard let header: UInt8 = payload.getInteger(at: payload.readerIndex) else { return false }
    switch form(header) {
    case .unit: return begins(payload, at: 0)
    // Behind its own header and the length of the first unit.
    case .aggregation: return begins(payload, at: headerBytes + 2)
    case .fragment:
      guard let rest: UInt8 = payload.getInteger(at: payload.readerIndex + 1),
        let own: UInt8 = payload.getInteger(at: payload.readerIndex + headerBytes),
        let slice: UInt8 = payload.getInteger(at: payload.readerIndex + headerBytes + 1), own & 0x80 != 0
      else { return false }
      return begins(ByteBuffer(bytes: [unitHeader(header, fragment: own), rest, slice]), at: 0)
    case .unknown: return false
    }
  }

  private static func begins(_ bytes: ByteBuffer, at offset: Int) -> Bool {
    switch HEVC.Configuration.role(ofUnitAt: offset, in: bytes) {
    case .first, .leading: true
    case .slice, .other, nil: false
    }
  }

  /// The type is the fragment's own; the rest is that of the payload (§4.4.3).
  static func unitHeader(_ header: UInt8, fragment: UInt8) -> UInt8 { header & 0x81 | (fragment & 63) << 1 }

  /// §4.4.2: the lowest layer and the lowest temporal layer of its units.
  static func aggregationHeader(_ units: [[UInt8]]) -> [UInt8] {
    let headers = units.compactMap { unit -> UInt16? in
      guard let first = unit.first, let second = unit.dropFirst().first else { return nil }
      return UInt16(first) << 8 | UInt16(second)
    }
    let forbidden = headers.reduce(0) { $0 | $1 & 0x8000 }
    let layer = headers.map { $0 & 0x01F8 }.min() ?? 0
    let temporal = headers.map { $0 & 7 }.min() ?? 1
    let header = forbidden | UInt16(aggregation) << 9 | layer | temporal
    return [UInt8(header >> 8), UInt8(header & 255)]
  }

  static func fragmentHeaders(_ header: UInt8) -> (payload: UInt8, fragment: UInt8) {
    (header & 0x81 | fragment << 1, unitType(header))
  }
}

extension NALUnitPacketizer<H265Payload> {
  init(vps: [[UInt8]], sps: [[UInt8]], pps: [[UInt8]]) { self.init(sets: vps + sps + pps) }
}
