internal import NIOCore

/// Follows the continuity counter of one PID (ISO/IEC 13818-1 §2.4.3.3).
struct ContinuityCheck {
  enum Finding {
    /// The next packet, or the first, or the first after an announced break.
    case inOrder
    /// A packet is sent twice; the second one is to be ignored.
    case duplicate
    /// At least one packet is missing before this one.
    case gap
  }

  private var last: (counter: UInt8, mark: UInt64)?
  private var isBroken = false

  /// So many packets are missing that the counter may have come round: the next packet follows a gap.
  mutating func breakOff() { isBroken = last != nil }

  /// Checks a packet with a payload.
  mutating func check(_ packet: TransportPacket) -> Finding {
    guard let payload = packet.payload else { return .inOrder }
    let mark = Self.mark(payload)
    defer { last = (packet.continuity, mark) }
    if isBroken {
      isBroken = false
      return .gap
    }
    guard let last, packet.adaptation?.isDiscontinuity != true else { return .inOrder }
    if packet.continuity == last.counter { return mark == last.mark ? .duplicate : .gap }
    return packet.continuity == (last.counter &+ 1) & 15 ? .inOrder : .gap
  }

  /// Tells payloads apart: sixteen missing packets look like a duplicate otherwise.
  private static func mark(_ payload: ByteBuffer) -> UInt64 {
    var mark = UInt64(payload.readableBytes)
    var index = payload.readerIndex
    while let word = payload.getInteger(at: index, as: UInt64.self) {
      mark = (mark << 7 | mark >> 57) ^ word
      index &+= 8
    }
    return mark
  }
}
