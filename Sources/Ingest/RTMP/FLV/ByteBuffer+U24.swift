internal import NIOCore

/// Numbers of three bytes, as FLV and the chunks of RTMP have them.
extension ByteBuffer {
  /// Three bytes, big-endian, without moving the reader index. Nil if they are not there.
  func u24(at index: Int) -> UInt32? {
    guard let high: UInt8 = getInteger(at: index), let low: UInt16 = getInteger(at: index + 1) else { return nil }
    return UInt32(high) << 16 | UInt32(low)
  }

  mutating func readU24() -> UInt32? {
    guard let value = u24(at: readerIndex) else { return nil }
    moveReaderIndex(forwardBy: 3)
    return value
  }

  mutating func writeU24(_ value: UInt32) {
    writeInteger(UInt8(truncatingIfNeeded: value >> 16))
    writeInteger(UInt16(truncatingIfNeeded: value))
  }
}
