internal import NIOCore

/// The payload of a packet: a few bytes, and a piece of a sample, which is not copied.
struct RTPPiece: Equatable {
  private(set) var head = PieceHead()
  var body: ByteBuffer
  /// It is the last one of its frame.
  var isLast = false

  init(_ body: ByteBuffer, head: [UInt8] = []) {
    self.body = body
    for byte in head { self.head.append(byte) }
  }

  var byteCount: Int { head.count &+ body.readableBytes }
}

/// Up to eight bytes before a piece, kept without memory of their own.
struct PieceHead: Equatable {
  private var bits: UInt64 = 0
  private(set) var count = 0

  /// Further bytes than eight are left out; no payload has them.
  mutating func append(_ byte: UInt8) {
    guard count < 8 else { return }
    bits |= UInt64(byte) << UInt64(56 &- 8 &* count)
    count &+= 1
  }

  /// The bytes, the first one in the highest place.
  var bigEndian: UInt64 { bits.bigEndian }
}

/// Takes samples apart for packets.
protocol RTPPacketizer {
  /// The pieces of a sample, at most `WebRTCLimits.payloadBytes` each. None of one that cannot be read.
  func pieces(of sample: ByteBuffer, isSync: Bool, to out: inout [RTPPiece])
}

/// Opus (RFC 7587 §4.2): a packet is a sample.
struct OpusPacketizer: RTPPacketizer {
  func pieces(of sample: ByteBuffer, isSync: Bool, to out: inout [RTPPiece]) {
    guard (1...WebRTCLimits.audioPayloadBytes).contains(sample.readableBytes) else { return }
    out.append(RTPPiece(sample))
  }
}

/// VP9 (RFC 9628): one layer, each picture with its number.
struct VP9Packetizer: RTPPacketizer {
  func pieces(of sample: ByteBuffer, isSync: Bool, to out: inout [RTPPiece]) {
    var (rest, isFirst) = (sample, true)
    let room = WebRTCLimits.payloadBytes - 1
    while let piece = rest.readSlice(length: min(room, rest.readableBytes)), piece.readableBytes > 0 {
      // I 0, P of frames that refer to others, L, F, B, E, V, Z (§4.2).
      let ends = rest.readableBytes == 0
      out.append(RTPPiece(piece, head: [(isSync ? 0 : 0x40) | (isFirst ? 0x08 : 0) | (ends ? 0x04 : 0)]))
      isFirst = false
    }
    if let last = out.indices.last, !isFirst { out[last].isLast = true }
  }
}
