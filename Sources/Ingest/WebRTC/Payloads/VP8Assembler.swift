internal import FMP4
internal import NIOCore

/// VP8 by RTP (RFC 7741): frames whose packets have a descriptor before their piece.
struct VP8Assembler: RTPFrameAssembler {
  private struct Frame {
    let timestamp: UInt32
    var payload = ByteBuffer()
    var isDamaged = false
  }

  private var frame: Frame?
  /// The newest picture that is complete, by its number.
  private var picture: UInt16?

  var heldBytes: Int { frame?.payload.readableBytes ?? 0 }

  mutating func receive(_ packet: RTPPacket, afterGap: Bool, to out: inout [RTPFrameEvent]) {
    let wasOpen = frame != nil
    if let open = frame, open.timestamp != packet.timestamp {
      // Its end did not come.
      frame = nil
      out.append(.lost)
    } else if afterGap {
      frame?.isDamaged = true
    }
    var payload = packet.payload
    let descriptor = VP8Descriptor(&payload)
    if let descriptor, descriptor.begins {
      // A beginning within a frame: the one before has no end.
      if frame != nil { frame?.isDamaged = true }
      if afterGap, !wasOpen, skips(descriptor) { out.append(.lost) }
    }
    if frame == nil { frame = Frame(timestamp: packet.timestamp, isDamaged: descriptor?.begins != true) }
    if descriptor == nil || (frame?.payload.readableBytes ?? 0) + payload.readableBytes > WebRTCLimits.frameBytes {
      frame = Frame(timestamp: packet.timestamp, isDamaged: true)
    } else {
      frame?.payload.writeImmutableBuffer(payload)
    }
    if packet.hasMarker { finish(descriptor?.picture, to: &out) }
  }

  /// Whether a picture is missing between the newest one and this: what a gap lost may have been padding alone.
  private func skips(_ descriptor: VP8Descriptor) -> Bool {
    guard let picture, let number = descriptor.picture else { return true }
    return (picture &+ 1) & (descriptor.isLong ? 0x7FFF : 0x7F) != number
  }

  private mutating func finish(_ number: UInt16?, to out: inout [RTPFrameEvent]) {
    guard let done = frame.take() else { return }
    picture = number
    guard !done.isDamaged, done.payload.readableBytes > 0 else { return out.append(.lost) }
    out.append(
      .frame(RTPFrame(timestamp: done.timestamp, payload: done.payload, isKey: VP8.isKeyFrame(done.payload))))
  }
}

/// What stands before the piece of a frame (RFC 7741 §4.2).
struct VP8Descriptor {
  /// A frame begins with this packet: its first partition does.
  let begins: Bool
  /// The number of the picture, in 7 or 15 bits.
  private(set) var picture: UInt16?
  private(set) var isLong = false

  /// Takes the descriptor off a payload. Nil if it exceeds it.
  init?(_ bytes: inout ByteBuffer) {
    guard let flags: UInt8 = bytes.readInteger() else { return nil }
    begins = flags & 0x10 != 0 && flags & 0x07 == 0
    guard flags & 0x80 != 0 else { return }
    guard let fields: UInt8 = bytes.readInteger() else { return nil }
    if fields & 0x80 != 0 {
      guard let first: UInt8 = bytes.readInteger() else { return nil }
      picture = UInt16(first & 0x7F)
      if first & 0x80 != 0 {
        guard let second: UInt8 = bytes.readInteger() else { return nil }
        (picture, isLong) = (UInt16(first & 0x7F) << 8 | UInt16(second), true)
      }
    }
    // TL0PICIDX; then TID, Y and KEYIDX, where there is one of them.
    if fields & 0x40 != 0, bytes.readInteger(as: UInt8.self) == nil { return nil }
    if fields & 0x30 != 0, bytes.readInteger(as: UInt8.self) == nil { return nil }
  }
}
