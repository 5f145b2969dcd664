internal import NIOCore

/// Takes samples of NAL units apart: units one by one, and in fragments where they are long. The parameter sets stand before
/// each key frame, in one packet if they fit.
struct NALUnitPacketizer<Payload: NALUnitPayload>: RTPPacketizer {
  private let sets: [ByteBuffer]
  /// All sets in one packet; nil if they do not fit.
  private let together: ByteBuffer?

  init(sets all: [[UInt8]]) {
    sets = all.map { ByteBuffer(bytes: $0) }
    let size = all.reduce(Payload.headerBytes) { $0 + 2 + $1.count }
    guard size <= WebRTCLimits.payloadBytes, all.count > 1 else {
      together = nil
      return
    }
    var packet = ByteBuffer(bytes: Payload.aggregationHeader(all))
    for set in all {
      packet.writeInteger(UInt16(clamping: set.count))
      packet.writeBytes(set)
    }
    together = packet
  }

  func pieces(of sample: ByteBuffer, isSync: Bool, to out: inout [RTPPiece]) {
    let start = out.count
    if isSync {
      if let together {
        out.append(RTPPiece(together))
      } else {
        for set in sets { add(set, to: &out) }
      }
    }
    let before = out.count
    var rest = sample
    while let length: UInt32 = rest.readInteger() {
      guard let size = Int(exactly: length), size >= Payload.headerBytes, let unit = rest.readSlice(length: size)
      else { break }
      add(unit, to: &out)
    }
    guard out.count > before else { return out.removeSubrange(start...) }
    out[out.count - 1].isLast = true
  }

  private func add(_ unit: ByteBuffer, to out: inout [RTPPiece]) {
    var unit = unit
    guard unit.readableBytes > WebRTCLimits.payloadBytes, let header = unit.readBytes(length: Payload.headerBytes),
      let first = header.first
    else { return out.append(RTPPiece(unit)) }
    // Of equal length, so that the last one is not short.
    let room = WebRTCLimits.payloadBytes - Payload.headerBytes - 1
    let count = (unit.readableBytes + room - 1) / room
    let length = (unit.readableBytes + count - 1) / count
    let own = Payload.fragmentHeaders(first)
    var head: [UInt8] = [own.payload] + header.dropFirst() + [0]
    var isFirst = true
    while let piece = unit.readSlice(length: min(length, unit.readableBytes)), piece.readableBytes > 0 {
      let ends = unit.readableBytes == 0
      let marks: UInt8 = (isFirst ? 0x80 : 0) | (ends ? 0x40 : 0)
      head[head.count - 1] = marks | own.fragment
      out.append(RTPPiece(piece, head: head))
      isFirst = false
    }
  }
}
