package import NIOCore

/// What stands before a box's payload: its size and type (ISO/IEC 14496-12 §4.2.2).
package struct BoxHeader: Sendable, Hashable {
  package let type: FourCC
  /// Bytes of this header: 8, or 16 where the size needs 64 bits.
  package let length: UInt64
  /// Bytes of the whole box; never fewer than `length`.
  package let size: UInt64

  /// Bytes that hold any header.
  package static let longest = 16

  package var payloadSize: UInt64 { size - length }

  /// Reads the header with which `bytes` begin; they are 16, or as many as there are. Nil where there is none, or its box
  /// does not fit into `room` bytes. A box that reaches to the end of its file (size 0) is none of those that are read here.
  package init?(_ bytes: ByteBuffer, room: UInt64) {
    guard let short = bytes.getInteger(at: bytes.readerIndex, as: UInt32.self),
      let type = bytes.getInteger(at: bytes.readerIndex + 4, as: UInt32.self)
    else { return nil }
    self.type = FourCC(rawValue: type)
    if short == 1 {
      guard let long = bytes.getInteger(at: bytes.readerIndex + 8, as: UInt64.self) else { return nil }
      (size, length) = (long, 16)
    } else {
      (size, length) = (UInt64(short), 8)
    }
    guard size >= length, size <= room else { return nil }
  }
}
