internal import NIOCore

/// A packet of RTP (RFC 3550 §5.1), read.
struct RTPPacket {
  static let headerBytes = 12

  let hasMarker: Bool
  private(set) var payloadType: UInt8
  private(set) var sequence: UInt16
  let timestamp: UInt32
  private(set) var source: UInt32
  /// Without padding. Empty for packets that only pad.
  private(set) var payload: ByteBuffer
  /// Header extensions, and of which kind they are. They are read when they are asked for: most never are.
  private var extensions: (profile: UInt16, bytes: ByteBuffer)?

  /// Most header extensions that are read of a packet.
  private static let mostElements = 16

  /// The sender (SSRC) of a datagram, before it is decrypted. Nil if it is too short.
  static func source(of datagram: ByteBuffer) -> UInt32? { datagram.getInteger(at: datagram.readerIndex + 8) }

  /// Nil if header, extensions or padding exceed the packet.
  init?(_ datagram: ByteBuffer) {
    var bytes = datagram
    guard let first: UInt8 = bytes.readInteger(), let second: UInt8 = bytes.readInteger(),
      let sequence: UInt16 = bytes.readInteger(), let timestamp: UInt32 = bytes.readInteger(),
      let source: UInt32 = bytes.readInteger(), first >> 6 == 2, bytes.readSlice(length: Int(first & 15) * 4) != nil
    else { return nil }
    (hasMarker, payloadType) = (second & 0x80 != 0, second & 0x7F)
    (self.sequence, self.timestamp, self.source) = (sequence, timestamp, source)
    if first & 0x10 != 0 {
      guard let profile: UInt16 = bytes.readInteger(), let words: UInt16 = bytes.readInteger(),
        let extensions = bytes.readSlice(length: Int(words) * 4)
      else { return nil }
      self.extensions = (profile, extensions)
    }
    if first & 0x20 != 0 {
      guard bytes.readableBytes > 0, let padding: UInt8 = bytes.getInteger(at: bytes.writerIndex - 1),
        (1...bytes.readableBytes).contains(Int(padding)),
        let rest = bytes.readSlice(length: bytes.readableBytes - Int(padding))
      else { return nil }
      payload = rest
    } else {
      payload = bytes
    }
  }

  /// The packet that this one repeats (RFC 4588 §4): its number stands before its payload. Nil for one that repeats none.
  func repeated(of source: UInt32, type: UInt8) -> RTPPacket? {
    var packet = self
    guard let number: UInt16 = packet.payload.readInteger(), packet.payload.readableBytes > 0 else { return nil }
    (packet.sequence, packet.source, packet.payloadType) = (number, source, type)
    return packet
  }

  /// The value of a header extension (RFC 8285 §4), of one-byte or two-byte elements. What is malformed ends them.
  func value(of number: UInt8?) -> ByteBuffer? {
    guard let number, let extensions else { return nil }
    let isShort = extensions.profile == 0xBEDE
    guard isShort || extensions.profile & 0xFFF0 == 0x1000 else { return nil }
    var (bytes, count) = (extensions.bytes, 0)
    while count < Self.mostElements, let head: UInt8 = bytes.readInteger() {
      if head == 0 { continue }
      let its = isShort ? head >> 4 : head
      if isShort, its == 15 { return nil }
      guard let length = isShort ? head & 15 : bytes.readInteger(as: UInt8.self),
        let value = bytes.readSlice(length: Int(length) + (isShort ? 1 : 0))
      else { return nil }
      if its == number { return value }
      count += 1
    }
    return nil
  }
}
