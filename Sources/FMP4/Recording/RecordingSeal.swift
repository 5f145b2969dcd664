package import NIOCore

/// What stands before each fragment of a recording while it is written: how long it is, its checksum, and how much of
/// the file was durable then. After a crash it tells whole fragments from torn ones. It is a `free` box, which players
/// pass over, of 32 bytes:
///
/// | offset | bytes | |
/// |---|---|---|
/// | 0 | 4 | 32 |
/// | 4 | 4 | `free` |
/// | 8 | 4 | `weir` |
/// | 12 | 4 | bytes of what follows and is sealed |
/// | 16 | 4 | their CRC-32C |
/// | 20 | 8 | bytes of the file that a power failure could not take any more |
/// | 28 | 4 | CRC-32C of the bytes from 8 to 27 |
package struct RecordingSeal: Sendable, Hashable {
  /// Bytes that it seals; they follow it.
  package var length: UInt32
  package var checksum: UInt32
  /// Bytes of the file, from its beginning.
  package var durableLength: UInt64

  package init(length: UInt32, checksum: UInt32, durableLength: UInt64) {
    self.length = length
    self.checksum = checksum
    self.durableLength = durableLength
  }

  package static let size = 32
  static let magic: FourCC = "weir"
  /// From the magic to before its own checksum.
  private static let protected = 8..<28

  /// The box; `crc` gives the CRC-32C of bytes.
  package func box(crc: (ByteBuffer) -> UInt32) -> ByteBuffer {
    var box = ByteBuffer.boxes(capacity: Self.size) { out in
      out.u32(UInt32(Self.size))
      out.fourCC("free")
      out.fourCC(Self.magic)
      out.u32(length)
      out.u32(checksum)
      out.u64(durableLength)
    }
    let own = box.getSlice(at: Self.protected.lowerBound, length: Self.protected.count).map(crc) ?? 0
    box.writeInteger(own)
    return box
  }

  /// Nil when the box is not one, or not whole.
  static func read(_ box: ByteBuffer, crc: (ByteBuffer) -> UInt32) -> RecordingSeal? {
    var box = box
    guard box.readableBytes == size,
      let content = box.getSlice(at: box.readerIndex + protected.lowerBound, length: protected.count),
      box.skip(8), box.readInteger(as: UInt32.self) == magic.rawValue,
      let length = box.readInteger(as: UInt32.self), let checksum = box.readInteger(as: UInt32.self),
      let durable = box.readInteger(as: UInt64.self), box.readInteger(as: UInt32.self) == crc(content)
    else { return nil }
    return RecordingSeal(length: length, checksum: checksum, durableLength: durable)
  }
}
