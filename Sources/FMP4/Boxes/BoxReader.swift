internal import NIOCore

/// A box that was read: its type and what is in it.
struct BoxView {
  var type: FourCC
  /// Without size and type.
  var payload: ByteBuffer
}

/// Walks over the boxes within a box (ISO/IEC 14496-12 §4.2). Ends at the first that does not fit.
struct BoxReader: Sequence, IteratorProtocol {
  private var buffer: ByteBuffer

  init(_ buffer: ByteBuffer) {
    self.buffer = buffer
  }

  mutating func next() -> BoxView? {
    guard let size = buffer.getInteger(at: buffer.readerIndex, as: UInt32.self),
      let type = buffer.getInteger(at: buffer.readerIndex + 4, as: UInt32.self), size >= 8,
      let whole = buffer.readSlice(length: Int(size))
    else { return nil }
    return BoxView(
      type: FourCC(rawValue: type), payload: whole.getSlice(at: whole.readerIndex + 8, length: Int(size) - 8) ?? whole)
  }
}

extension ByteBuffer {
  /// The first box of a type among those within this one.
  func firstBox(_ type: FourCC) -> ByteBuffer? {
    BoxReader(self).first { $0.type == type }?.payload
  }

  /// Version and flags of a full box (ISO/IEC 14496-12 §4.2.2).
  mutating func readFullBoxHeader() -> (version: UInt8, flags: UInt32)? {
    readInteger(as: UInt32.self).map { (UInt8(truncatingIfNeeded: $0 >> 24), $0 & 0xFF_FFFF) }
  }

  mutating func skip(_ count: Int) -> Bool {
    guard count <= readableBytes else { return false }
    moveReaderIndex(forwardBy: count)
    return true
  }
}
