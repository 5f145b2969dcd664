package import NIOCore

/// Writes boxes with nested closures into a span of reserved capacity. Sizes are filled in afterwards, so each is
/// computed once. All integers are big-endian (ISO/IEC 14496-12 §4.2).
extension OutputRawSpan {
  @inline(__always) mutating func u8(_ value: UInt8) { append(value, as: UInt8.self) }
  @inline(__always) mutating func u16(_ value: UInt16) { append(value.bigEndian, as: UInt16.self) }
  @inline(__always) mutating func u24(_ value: UInt32) {
    u8(UInt8(truncatingIfNeeded: value >> 16))
    u16(UInt16(truncatingIfNeeded: value))
  }
  @inline(__always) package mutating func u32(_ value: UInt32) { append(value.bigEndian, as: UInt32.self) }
  @inline(__always) package mutating func u64(_ value: UInt64) { append(value.bigEndian, as: UInt64.self) }
  @inline(__always) mutating func i16(_ value: Int16) { u16(UInt16(bitPattern: value)) }
  @inline(__always) mutating func i32(_ value: Int32) { u32(UInt32(bitPattern: value)) }
  @inline(__always) mutating func i64(_ value: Int64) { u64(UInt64(bitPattern: value)) }
  @inline(__always) package mutating func fourCC(_ value: FourCC) { u32(value.rawValue) }

  package mutating func bytes(_ bytes: [UInt8]) {
    for byte in bytes { u8(byte) }
  }

  mutating func zeros(_ count: Int) {
    append(repeating: UInt8(0), count: count, as: UInt8.self)
  }

  /// Text followed by a zero byte, as in `hdlr` and `url ` boxes.
  mutating func cString(_ text: String) {
    for byte in text.utf8 { u8(byte) }
    u8(0)
  }

  /// Overwrites four bytes at `offset`, counted from the start of the span.
  mutating func patch(u32 value: UInt32, at offset: Int) {
    var bytes = mutableBytes
    bytes.storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt32.self)
  }

  /// A box: size, type, then the output of `body` (ISO/IEC 14496-12 §4.2.2).
  @inline(__always)
  package mutating func box(_ type: FourCC, _ body: (inout OutputRawSpan) -> Void) {
    let start = byteCount
    u32(0)
    fourCC(type)
    body(&self)
    patch(u32: UInt32(truncatingIfNeeded: byteCount - start), at: start)
  }

  /// A box that begins with a version and 24 flags (ISO/IEC 14496-12 §4.2.2, FullBox).
  @inline(__always)
  mutating func fullBox(
    _ type: FourCC, version: UInt8 = 0, flags: UInt32 = 0, _ body: (inout OutputRawSpan) -> Void
  ) {
    box(type) {
      $0.u32(UInt32(version) << 24 | flags & 0xFF_FFFF)
      body(&$0)
    }
  }

  /// A full box with an entry count and the entries.
  @inline(__always)
  mutating func table<Entry>(
    _ type: FourCC, version: UInt8 = 0, _ entries: [Entry], _ body: (inout OutputRawSpan, Entry) -> Void
  ) {
    fullBox(type, version: version) {
      $0.u32(UInt32(truncatingIfNeeded: entries.count))
      for entry in entries { body(&$0, entry) }
    }
  }
}

extension ByteBuffer {
  /// A buffer filled by `body`. Writing past `capacity` traps, so callers compute the size first.
  package static func boxes(capacity: Int, _ body: (inout OutputRawSpan) -> Void) -> ByteBuffer {
    var buffer = ByteBuffer()
    buffer.reserveCapacity(capacity)
    buffer.writeWithOutputRawSpan(minimumWritableBytes: capacity) { span in body(&span) }
    return buffer
  }
}
