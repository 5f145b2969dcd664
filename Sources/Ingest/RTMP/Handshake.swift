internal import Base
internal import NIOCore

/// The RTMP handshake, server side (RTMP 5.2). C0 and C1 are answered at once with S0, S1 and S2; C2 is read and
/// ignored. Clients that sign C1 (Flash Player 9 and its copies) get signed responses.
struct Handshake {
  static let blockSize = 1536
  private static let version: UInt8 = 3

  private enum State { case awaitingC1, awaitingC2, done }
  private var state = State.awaitingC1
  private var held = ByteBuffer()

  /// Result of a call.
  enum Step: Equatable {
    case needsMore
    case answer(ByteBuffer)
    case done
  }

  /// Consumes the bytes of the handshake. `random` fills the blocks to send.
  mutating func receive(
    _ bytes: inout ByteBuffer, random: (Int) -> [UInt8] = HandshakeDigest.randomBytes
  ) throws(WireError) -> Step {
    switch state {
    case .awaitingC1:
      take(&bytes, upTo: 1 + Self.blockSize)
      if let first: UInt8 = held.getInteger(at: held.readerIndex) { try check(version: first) }
      guard held.readableBytes == 1 + Self.blockSize else { return .needsMore }
      held.moveReaderIndex(forwardBy: 1)
      let c1 = Array(held.readableBytesView)
      held = ByteBuffer()
      state = .awaitingC2
      return .answer(Self.answer(to: c1, random: random))
    case .awaitingC2:
      // C2 echoes S1, but not in all clients; nothing depends on it.
      take(&bytes, upTo: Self.blockSize)
      guard held.readableBytes == Self.blockSize else { return .needsMore }
      held = ByteBuffer()
      state = .done
      return .done
    case .done: return .done
    }
  }

  private mutating func take(_ bytes: inout ByteBuffer, upTo total: Int) {
    let count = min(bytes.readableBytes, total - held.readableBytes)
    if let slice = bytes.readSlice(length: count) { held.writeImmutableBuffer(slice) }
  }

  /// Versions other than 3 are answered with 3 (RTMP 5.2.2). Other protocols are detected by the first byte.
  private func check(version: UInt8) throws(WireError) {
    switch version {
    case 0x16:
      throw WireError(.malformed, "the peer speaks TLS on the plain RTMP port; use rtmp:// here or the RTMPS port")
    case 32...: throw WireError(.malformed, "the peer does not speak RTMP (first byte \(version))")
    default: break
    }
  }

  /// S0, S1 and S2 in one buffer.
  private static func answer(to c1: [UInt8], random: (Int) -> [UInt8]) -> ByteBuffer {
    var out = ByteBuffer()
    out.reserveCapacity(1 + 2 * blockSize)
    out.writeInteger(version)
    if let client = HandshakeDigest.find(in: c1) {
      out.writeBytes(HandshakeDigest.signedS1(scheme: client.scheme, random: random))
      out.writeBytes(HandshakeDigest.signedS2(clientDigest: client.digest, random: random))
    } else {
      // RTMP 5.2.3, 5.2.4: time, zero, random bytes; then C1 unchanged.
      out.writeInteger(UInt32(0))
      out.writeInteger(UInt32(0))
      out.writeBytes(random(blockSize - 8))
      out.writeBytes(c1)
    }
    return out
  }
}
