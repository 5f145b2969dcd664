package import NIOCore

extension H264.Configuration {
  package static var hasNALUnits: Bool { true }

  /// ITU-T H.264 §7.4.1.2.3.
  package static func role(ofUnitAt offset: Int, in bytes: ByteBuffer) -> NALUnitRole? {
    let index = bytes.readerIndex &+ offset
    guard let header: UInt8 = bytes.getInteger(at: index), let slice: UInt8 = bytes.getInteger(at: index &+ 1) else {
      return nil
    }
    switch header & 31 {
    // `first_mb_in_slice` is 0 if its first bit is set.
    case 1, 2, 5: return slice & 0x80 != 0 ? .first : .slice
    case 6, 7, 8, 9, 14, 15, 16, 17, 18: return .leading
    default: return .other
    }
  }
}
