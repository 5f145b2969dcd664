internal import FMP4
internal import NIOCore

/// VP9 by RTP (RFC 9628): frames whose packets have a descriptor before their piece. Of several spatial layers the base goes on,
/// which needs no other.
struct VP9Assembler: RTPFrameAssembler {
  private struct Frame {
    let timestamp: UInt32
    var payload = ByteBuffer()
    var isDamaged = false
  }

  private var frame: Frame?
  /// The newest picture that is complete, by its number (I).
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
    guard let descriptor = VP9Descriptor(&payload) else {
      // Which layer it was of is unknown.
      frame = Frame(timestamp: packet.timestamp, isDamaged: true)
      if packet.hasMarker { finish(nil, to: &out) }
      return
    }
    guard descriptor.spatialLayer == 0 else {
      if afterGap, !wasOpen, skips(descriptor) { out.append(.lost) }
      return
    }
    if descriptor.begins {
      // A beginning within a frame: the one before has no end.
      if frame != nil { frame?.isDamaged = true }
      if afterGap, !wasOpen, frame == nil, skips(descriptor, isNext: true) { out.append(.lost) }
    }
    if frame == nil { frame = Frame(timestamp: packet.timestamp, isDamaged: !descriptor.begins) }
    frame?.payload.writeImmutableBuffer(payload)
    if frame.map({ $0.payload.readableBytes > WebRTCLimits.frameBytes }) == true {
      frame = Frame(timestamp: packet.timestamp, isDamaged: true)
    }
    // The marker stands behind the last layer.
    if descriptor.ends || packet.hasMarker { finish(descriptor.picture, to: &out) }
  }

  /// Whether a picture of the base is missing between the newest one and this: a gap may be of other layers alone.
  /// `isNext`: this is the following picture, not one that has come already.
  private func skips(_ descriptor: VP9Descriptor, isNext: Bool = false) -> Bool {
    guard let picture, let number = descriptor.picture else { return true }
    let mask: UInt16 = descriptor.isLong ? 0x7FFF : 0x7F
    return (picture &+ (isNext ? 1 : 0)) & mask != number
  }

  private mutating func finish(_ number: UInt16?, to out: inout [RTPFrameEvent]) {
    guard let done = frame.take() else { return }
    picture = number
    guard !done.isDamaged, done.payload.readableBytes > 0 else { return out.append(.lost) }
    out.append(
      .frame(RTPFrame(timestamp: done.timestamp, payload: done.payload, isKey: VP9.isKeyFrame(done.payload))))
  }
}

/// What stands before the piece of a frame (RFC 9628 §4.2).
struct VP9Descriptor {
  /// A frame of its layer begins (B) or ends (E) with this packet.
  let begins: Bool
  let ends: Bool
  private(set) var spatialLayer: UInt8 = 0
  /// The number of the picture, in 7 or 15 bits.
  private(set) var picture: UInt16?
  private(set) var isLong = false

  /// Takes the descriptor off a payload. Nil if it exceeds it.
  init?(_ bytes: inout ByteBuffer) {
    guard let flags: UInt8 = bytes.readInteger() else { return nil }
    (begins, ends) = (flags & 0x08 != 0, flags & 0x04 != 0)
    let isFlexible = flags & 0x10 != 0
    if flags & 0x80 != 0 {
      guard let first: UInt8 = bytes.readInteger() else { return nil }
      picture = UInt16(first & 0x7F)
      if first & 0x80 != 0 {
        guard let second: UInt8 = bytes.readInteger() else { return nil }
        (picture, isLong) = (UInt16(first & 0x7F) << 8 | UInt16(second), true)
      }
    }
    if flags & 0x20 != 0 {
      guard let layers: UInt8 = bytes.readInteger() else { return nil }
      spatialLayer = layers >> 1 & 7
      // TL0PICIDX
      if !isFlexible, bytes.readInteger(as: UInt8.self) == nil { return nil }
    }
    if flags & 0x40 != 0, isFlexible {
      // Up to three reference pictures; the last one does not continue (N).
      var count = 0
      while true {
        guard count < 3, let reference: UInt8 = bytes.readInteger() else { return nil }
        count += 1
        if reference & 1 == 0 { break }
      }
    }
    if flags & 0x02 != 0, !Self.skipStructure(&bytes) { return nil }
  }

  /// The scalability structure (§4.2.1). False if it exceeds the payload.
  private static func skipStructure(_ bytes: inout ByteBuffer) -> Bool {
    guard let head: UInt8 = bytes.readInteger() else { return false }
    // Width and height of each layer.
    if head & 0x10 != 0, bytes.readSlice(length: (Int(head >> 5) + 1) * 4) == nil { return false }
    guard head & 0x08 != 0 else { return true }
    guard let groups: UInt8 = bytes.readInteger() else { return false }
    for _ in 0..<groups {
      guard let group: UInt8 = bytes.readInteger(), bytes.readSlice(length: Int(group >> 2 & 3)) != nil else {
        return false
      }
    }
    return true
  }
}
