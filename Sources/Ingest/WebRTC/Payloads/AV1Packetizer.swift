internal import NIOCore

/// AV1 by RTP ("RTP Payload Format For AV1", version 1.0.0): open bitstream units without their sizes, one behind the other.
/// Only the first packet of a temporal unit begins with a whole one: receivers know it by that.
struct AV1Packetizer: RTPPacketizer {
  private static let sequenceHeader: UInt8 = 1
  /// A packet with less room gets no further unit.
  private static let leastRoom = 16
  /// Temporal delimiter, tile list, padding (§5).
  private static let leftOut: Set<UInt8> = [2, 8, 15]

  /// The sequence header of the track, for key frames without one.
  private let headers: ByteBuffer

  /// - Parameter record: `av1C` (AV1-ISOBMFF §2.3).
  init(record: [UInt8]) { headers = ByteBuffer(bytes: record.dropFirst(4)) }

  func pieces(of sample: ByteBuffer, isSync: Bool, to out: inout [RTPPiece]) {
    var units = units(of: sample)
    guard !units.isEmpty else { return }
    if isSync, !units.contains(where: { $0.type == Self.sequenceHeader }) { units = self.units(of: headers) + units }
    var packet = ByteBuffer()
    // N (§4.4) in the first one; W is 0, so each element has its length.
    packet.writeInteger(UInt8(isSync ? 0x08 : 0))
    for (index, unit) in units.enumerated() {
      var rest = ByteBuffer(bytes: unit.header)
      rest.writeImmutableBuffer(unit.payload)
      while rest.readableBytes > 0 {
        let room = WebRTCLimits.payloadBytes - packet.readableBytes - 2
        var count = min(rest.readableBytes, room)
        // What would end with its packet leaves a byte for the next one.
        if count == rest.readableBytes, count > 1, index < units.count - 1, room - count < Self.leastRoom { count -= 1 }
        if count <= 0 {
          // Many short units have filled it.
          out.append(RTPPiece(packet))
          packet = ByteBuffer(integer: UInt8(0))
          continue
        }
        guard let piece = rest.readSlice(length: count) else { break }
        if count > 127 { packet.writeInteger(UInt8(count & 127) | 0x80) }
        packet.writeInteger(UInt8(count > 127 ? count >> 7 : count))
        packet.writeImmutableBuffer(piece)
        guard rest.readableBytes > 0 else { continue }
        // Y: it goes on in the next packet, which begins with Z.
        let flags: UInt8 = packet.getInteger(at: packet.readerIndex) ?? 0
        packet.setInteger(flags | 0x40, at: packet.readerIndex)
        out.append(RTPPiece(packet))
        packet = ByteBuffer(integer: UInt8(0x80))
      }
    }
    var last = RTPPiece(packet)
    last.isLast = true
    out.append(last)
  }

  /// Those that are sent.
  private func units(of bytes: ByteBuffer) -> [Unit] {
    var (rest, units) = (bytes, [Unit]())
    while let unit = Unit(&rest) { if !Self.leftOut.contains(unit.type) { units.append(unit) } }
    return units
  }

  /// An open bitstream unit (AV1 §5.3).
  private struct Unit {
    let type: UInt8
    /// Without the flag of a size.
    let header: [UInt8]
    let payload: ByteBuffer

    /// Reads the next one. Nil at the end, and if it exceeds the bytes.
    init?(_ bytes: inout ByteBuffer) {
      guard let first: UInt8 = bytes.readInteger() else { return nil }
      type = first >> 3 & 15
      var header = [first & ~2]
      if first & 4 != 0 {
        guard let second: UInt8 = bytes.readInteger() else { return nil }
        header.append(second)
      }
      var size = first & 2 == 0 ? bytes.readableBytes : 0
      if first & 2 != 0 {
        var shift = 0
        while true {
          guard shift < 28, let byte: UInt8 = bytes.readInteger() else { return nil }
          size |= Int(byte & 127) << shift
          shift += 7
          if byte & 128 == 0 { break }
        }
      }
      guard let payload = bytes.readSlice(length: size) else { return nil }
      (self.header, self.payload) = (header, payload)
    }
  }
}
