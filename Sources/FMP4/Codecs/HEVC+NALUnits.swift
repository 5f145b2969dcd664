package import NIOCore

extension HEVC.Configuration {
  package static var hasNALUnits: Bool { true }

  /// ITU-T H.265 §7.4.2.4.4.
  package static func role(ofUnitAt offset: Int, in bytes: ByteBuffer) -> NALUnitRole? {
    let index = bytes.readerIndex &+ offset
    guard let header: UInt16 = bytes.getInteger(at: index), let slice: UInt8 = bytes.getInteger(at: index &+ 2) else {
      return nil
    }
    let layer = header >> 3 & 63
    switch header >> 9 & 63 {
    // `first_slice_segment_in_pic_flag`.
    case 0..<32: return slice & 0x80 != 0 && layer == 0 ? .first : .slice
    case 32...35, 39, 41...44, 48...55: return layer == 0 ? .leading : .other
    default: return .other
    }
  }
}
