package import NIOCore

/// A box in memory: its header, and its payload or the first bytes of it.
package struct BoxView: Sendable {
  package let header: BoxHeader
  package let payload: ByteBuffer
  private let parents: [FourCC]

  package init(_ header: BoxHeader, _ payload: ByteBuffer, in parents: [FourCC] = []) {
    self.header = header
    self.payload = payload
    self.parents = parents
  }

  package var type: FourCC { header.type }
  /// Whether the complete payload is there.
  package var isWhole: Bool { UInt64(payload.readableBytes) == header.payloadSize }
  /// Box types from the outermost box to this one.
  var path: [FourCC] { parents + [type] }

  /// Makes an error about this box.
  package func error(_ code: BoxError.Code) -> BoxError { BoxError(code, path, at: header.range.lowerBound) }

  /// The boxes within it, after its first `fields` bytes.
  func boxes(behind fields: Int = 0) -> BoxReader {
    var rest = payload
    rest.moveReaderIndex(forwardBy: min(fields, rest.readableBytes))
    return BoxReader(rest, at: header.payload.lowerBound + UInt64(payload.readableBytes - rest.readableBytes), of: path)
  }

  /// The first child box of a type.
  package func first(_ type: FourCC) -> BoxView? {
    boxes().first { $0.type == type }
  }

  /// The box at the end of a path of types. Throws if one of them is missing.
  package func child(_ types: FourCC...) throws(BoxError) -> BoxView {
    var box = self
    for type in types {
      guard let inner = box.first(type) else { throw box.error(.missing(type)) }
      box = inner
    }
    return box
  }
}

/// Iterates over boxes in memory (ISO/IEC 14496-12 §4.2). Ends at the first invalid box.
struct BoxReader: Sequence, IteratorProtocol {
  private var rest: ByteBuffer
  private var offset: UInt64
  private let path: [FourCC]

  /// `offset` is the place of the bytes in their file, and `path` lists the enclosing boxes.
  init(_ bytes: ByteBuffer, at offset: UInt64 = 0, of path: [FourCC] = []) {
    rest = bytes
    self.offset = offset
    self.path = path
  }

  mutating func next() -> BoxView? {
    let room = offset..<Swift.max(offset, offset &+ UInt64(rest.readableBytes))
    guard let header = try? BoxHeader(rest, in: room, of: path), var whole = rest.readSlice(length: Int(header.size))
    else { return nil }
    whole.moveReaderIndex(forwardBy: Int(header.length))
    offset = header.range.upperBound
    return BoxView(header, whole, in: path)
  }
}

/// Reads the fields of a box in order, big-endian. The error states where the bytes end.
package struct BoxFields {
  private let box: BoxView
  /// The unread bytes.
  package private(set) var rest: ByteBuffer

  package init(_ box: BoxView) {
    self.box = box
    rest = box.payload
  }

  mutating func u8() throws(BoxError) -> UInt8 { try integer() }
  mutating func u16() throws(BoxError) -> UInt16 { try integer() }
  package mutating func u32() throws(BoxError) -> UInt32 { try integer() }
  package mutating func u64() throws(BoxError) -> UInt64 { try integer() }
  mutating func i32() throws(BoxError) -> Int32 { try integer() }
  mutating func i64() throws(BoxError) -> Int64 { try integer() }
  package mutating func fourCC() throws(BoxError) -> FourCC { FourCC(rawValue: try integer()) }

  /// Version and flags of a full box (ISO/IEC 14496-12 §4.2.2).
  mutating func versionAndFlags() throws(BoxError) -> (version: UInt8, flags: UInt32) {
    let both = try u32()
    return (UInt8(truncatingIfNeeded: both >> 24), both & 0xFF_FFFF)
  }

  /// A time or duration: 32 bits in version 0 of a box, 64 bits in version 1.
  mutating func time(version: UInt8) throws(BoxError) -> Int64 {
    try version == 1 ? i64() : Int64(u32())
  }

  private mutating func integer<T: FixedWidthInteger>() throws(BoxError) -> T {
    guard let value = rest.readInteger(as: T.self) else { throw ended }
    return value
  }

  private var ended: BoxError {
    let done = UInt64(box.payload.readableBytes - rest.readableBytes)
    return BoxError(.truncated, box.path, at: box.header.payload.lowerBound + done)
  }
}
