internal import NIOCore

/// One packet of a transport stream (ISO/IEC 13818-1 §2.4.3.2).
struct TransportPacket {
  /// 13 bits.
  let pid: UInt16
  /// A PES packet begins with the payload, or a section begins in it.
  let isUnitStart: Bool
  let isScrambled: Bool
  /// 4 bits. It counts the packets with a payload of a PID.
  let continuity: UInt8
  /// Nil if there is none.
  let payload: ByteBuffer?
  let adaptation: AdaptationField?

  static let nullPID: UInt16 = 0x1FFF
  static let range: UInt16 = 0x1FFF

  /// Reads a packet of 188 bytes. Nil if it is damaged: marked as erroneous, or of a form that does not exist.
  init?(_ bytes: ByteBuffer) {
    var rest = bytes
    guard let sync = rest.readInteger(as: UInt8.self), sync == TransportPacketFinder.syncByte,
      let word = rest.readInteger(as: UInt16.self), word & 0x8000 == 0, let control = rest.readInteger(as: UInt8.self),
      control & 0x30 != 0
    else { return nil }
    pid = word & Self.range
    isUnitStart = word & 0x4000 != 0
    isScrambled = control & 0xC0 != 0
    continuity = control & 15
    if control & 0x20 != 0 {
      guard let length = rest.readInteger(as: UInt8.self), let field = rest.readSlice(length: Int(length)) else {
        return nil
      }
      adaptation = AdaptationField(field)
    } else {
      adaptation = nil
    }
    payload = control & 0x10 != 0 && rest.readableBytes > 0 ? rest : nil
  }
}

/// The adaptation field of a packet (ISO/IEC 13818-1 §2.4.3.4), without its length.
struct AdaptationField {
  /// Continuity counters and the programme's clock may jump here.
  let isDiscontinuity: Bool
  let isRandomAccess: Bool
  /// The programme clock reference in ticks of 27 MHz.
  let clock: UInt64?

  static let clockRate: UInt32 = 27_000_000

  /// Unreadable fields are taken as absent.
  init(_ field: ByteBuffer) {
    var rest = field
    let flags: UInt8 = rest.readInteger() ?? 0
    isDiscontinuity = flags & 0x80 != 0
    isRandomAccess = flags & 0x40 != 0
    if flags & 0x10 != 0, let high: UInt32 = rest.readInteger(), let low: UInt16 = rest.readInteger() {
      let base = UInt64(high) << 1 | UInt64(low >> 15)
      clock = base &* 300 &+ UInt64(low & 0x1FF)
    } else {
      clock = nil
    }
  }
}
