internal import FMP4
package import NIOCore

/// Seal written before each fragment of a growing recording: the fragment's length and checksum, and how much of the
/// file was durable then. After a crash it separates complete fragments from damaged ones. It is a `free` box of 32
/// bytes, which players skip:
///
/// | offset | bytes | |
/// |---|---|---|
/// | 0 | 4 | 32 |
/// | 4 | 4 | `free` |
/// | 8 | 4 | `weir` |
/// | 12 | 4 | length of the sealed bytes that follow |
/// | 16 | 4 | their CRC-32C |
/// | 20 | 8 | bytes of the file that were safe from a power failure |
/// | 28 | 4 | CRC-32C of the bytes from 8 to 27 |
package struct RecordingSeal: Sendable, Hashable {
  /// Number of sealed bytes; they follow the seal.
  package var length: UInt32
  package var checksum: UInt32
  /// Durable bytes, counted from the start of the file.
  package var durableLength: UInt64

  package init(length: UInt32, checksum: UInt32, durableLength: UInt64) {
    self.length = length
    self.checksum = checksum
    self.durableLength = durableLength
  }

  package static let size = 32
  static let magic: FourCC = "weir"
  /// Bytes covered by the seal's own checksum: from the magic to before that checksum.
  private static let protected = 8..<28

  /// Makes the box. `crc` computes the CRC-32C of bytes.
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

  /// Throws if the box is not a seal or is not complete.
  init(_ box: BoxView, crc: (ByteBuffer) -> UInt32) throws(BoxError) {
    var fields = BoxFields(box)
    let magic = try fields.fourCC()
    self.init(length: try fields.u32(), checksum: try fields.u32(), durableLength: try fields.u64())
    let own = try fields.u32()
    guard magic == Self.magic, fields.rest.readableBytes == 0,
      own == box.payload.getSlice(at: box.payload.readerIndex, length: Self.protected.count).map(crc)
    else { throw box.error(.invalid) }
  }
}
