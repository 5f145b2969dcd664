internal import FMP4
internal import NIOCore

/// H.264 by RTP (RFC 6184), packetization-mode 1: NAL units one by one, and in fragments (FU-A) where they are long. The
/// parameter sets stand before each key frame, in one packet (STAP-A) if they fit.
struct H264Packetizer: RTPPacketizer {
  private let sets: [ByteBuffer]
  /// All sets in one packet; nil if they do not fit.
  private let together: ByteBuffer?

  init(sps: [[UInt8]], pps: [[UInt8]]) {
    let all = sps + pps
    sets = all.map { ByteBuffer(bytes: $0) }
    let size = all.reduce(1) { $0 + 2 + $1.count }
    guard size <= WebRTCLimits.payloadBytes, all.count > 1 else {
      together = nil
      return
    }
    var packet = ByteBuffer()
    // §5.7.1: the highest importance of its units.
    packet.writeInteger((all.compactMap(\.first).map { $0 & 0x60 }.max() ?? 0) | 24)
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
      guard let size = Int(exactly: length), size > 0, let unit = rest.readSlice(length: size) else { break }
      add(unit, to: &out)
    }
    guard out.count > before else { return out.removeSubrange(start...) }
    out[out.count - 1].isLast = true
  }

  private func add(_ unit: ByteBuffer, to out: inout [RTPPiece]) {
    var unit = unit
    guard unit.readableBytes > WebRTCLimits.payloadBytes, let header: UInt8 = unit.readInteger() else {
      return out.append(RTPPiece(unit))
    }
    // §5.8: of equal length, so that the last one is not short.
    let room = WebRTCLimits.payloadBytes - 2
    let count = (unit.readableBytes + room - 1) / room
    let length = (unit.readableBytes + count - 1) / count
    var isFirst = true
    while let piece = unit.readSlice(length: min(length, unit.readableBytes)), piece.readableBytes > 0 {
      let ends = unit.readableBytes == 0
      out.append(
        RTPPiece(piece, head: [header & 0xE0 | 28, (isFirst ? 0x80 : 0) | (ends ? 0x40 : 0) | header & 31]))
      isFirst = false
    }
  }
}
