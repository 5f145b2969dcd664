internal import FMP4
package import NIOCore

/// Metadata written while a recording grows, so that it survives a crash: a `free` box between fragments, which players
/// skip.
///
/// | offset | bytes | |
/// |---|---|---|
/// | 0 | 4 | size of the box |
/// | 4 | 4 | `free` |
/// | 8 | 4 | `note` |
/// | 12 | 4 | CRC-32C of the content |
/// | 16 | n | content |
package enum RecordingMetadataBox {
  static let magic: FourCC = "note"
  private static let headSize = 16
  /// Largest box that is read, in bytes.
  static let maximumSize = 1024

  /// Makes the box. `crc` computes the CRC-32C of bytes. Nil if the content is too long.
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

  /// Content of the box. Throws if it is not such a box or is not complete.
  static func content(_ box: BoxView, crc: (ByteBuffer) -> UInt32) throws(BoxError) -> ByteBuffer {
    var fields = BoxFields(box)
    let magic = try fields.fourCC()
    let checksum = try fields.u32()
    guard magic == Self.magic, crc(fields.rest) == checksum else { throw box.error(.invalid) }
    return fields.rest
  }
}
