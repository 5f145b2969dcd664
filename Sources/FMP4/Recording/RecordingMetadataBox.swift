package import NIOCore

/// Something that is told of a recording while it is written, so that a crash does not take it: a `free` box, which
/// players pass over, between fragments.
///
/// | offset | bytes | |
/// |---|---|---|
/// | 0 | 4 | size of the box |
/// | 4 | 4 | `free` |
/// | 8 | 4 | `note` |
/// | 12 | 4 | CRC-32C of what follows |
/// | 16 | n | what is told |
package enum RecordingMetadataBox {
  static let magic: FourCC = "note"
  private static let headSize = 16
  /// Larger ones are not read.
  static let maximumSize = 1024

  /// The box; `crc` gives the CRC-32C of bytes. Nil when that is too much to tell.
  package static func box(_ content: ByteBuffer, crc: (ByteBuffer) -> UInt32) -> ByteBuffer? {
    let size = headSize + content.readableBytes
    guard size <= maximumSize else { return nil }
    var box = ByteBuffer.boxes(capacity: headSize) { out in
      out.u32(UInt32(size))
      out.fourCC("free")
      out.fourCC(magic)
      out.u32(crc(content))
    }
    box.writeImmutableBuffer(content)
    return box
  }

  /// What is told; throws when the box is not one, or not whole.
  static func content(_ box: BoxView, crc: (ByteBuffer) -> UInt32) throws(BoxError) -> ByteBuffer {
    var fields = BoxFields(box)
    let magic = try fields.fourCC()
    let checksum = try fields.u32()
    guard magic == Self.magic, crc(fields.rest) == checksum else { throw box.error(.invalid) }
    return fields.rest
  }
}
