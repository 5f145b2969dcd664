internal import NIOCore

/// Reads whole bytes of a configuration record, big-endian. The error states where the bytes end.
struct ByteReader {
  private var buffer: ByteBuffer
  private let size: Int
  private let name: StaticString

  /// Largest record that is read, in bytes. Real ones have tens to hundreds of bytes; HEVC's with its SEI a few
  /// thousand.
  static let maximumRecordSize = 65_536

  /// `name` is the structure, for the errors.
  init(_ buffer: ByteBuffer, name: StaticString) throws(CodecError) {
    guard buffer.readableBytes <= Self.maximumRecordSize else {
      throw CodecError(
        .invalid, "\(name) has \(buffer.readableBytes) bytes, at most \(Self.maximumRecordSize) are read")
    }
    self.buffer = buffer
    self.name = name
    size = buffer.readableBytes
  }

  var offset: Int { size &- buffer.readableBytes }
  var remaining: Int { buffer.readableBytes }

  mutating func u8() throws(CodecError) -> UInt8 { try integer() }
  mutating func u16() throws(CodecError) -> UInt16 { try integer() }
  mutating func u32() throws(CodecError) -> UInt32 { try integer() }

  private mutating func integer<T: FixedWidthInteger>() throws(CodecError) -> T {
    guard let value = buffer.readInteger(as: T.self) else { throw ended }
    return value
  }

  mutating func bytes(_ count: Int) throws(CodecError) -> [UInt8] {
    guard let bytes = buffer.readBytes(length: count) else { throw ended }
    return bytes
  }

  private var ended: CodecError {
    CodecError(.truncated, "\(name) ends after \(size) bytes, within a field", offset: offset)
  }
}
