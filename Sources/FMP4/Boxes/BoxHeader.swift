package import NIOCore

/// Header of a box: size and type (ISO/IEC 14496-12 §4.2.2), and its place in the file. The box lies within its
/// container, so sums of these numbers cannot overflow. Box sizes are read only here.
package struct BoxHeader: Sendable, Hashable {
  package let type: FourCC
  /// Byte range of the whole box in the file. Its first `length` bytes are the header.
  package let range: Range<UInt64>
  /// Bytes of this header: 8, or 16 with a 64-bit size.
  package let length: UInt64
  package let extent: Extent

  package enum Extent: Sendable, Hashable {
    case stated
    /// The box states no size and extends to the end of its container.
    case open
  }

  /// Sizes in bytes: `shortest` is the shortest header, and so the shortest box. `longest` is the longest header.
  package static let shortest = 8
  package static let longest = 16

  /// Bytes of the whole box. At least `length`.
  package var size: UInt64 { range.upperBound - range.lowerBound }
  package var payload: Range<UInt64> { range.lowerBound + length..<range.upperBound }
  package var payloadSize: UInt64 { size - length }

  /// Reads the header at the start of `bytes`: 16 bytes, or all that there are. The box begins at the start of `room`
  /// and ends within it. `path` lists the enclosing boxes. Eight zeros are an error, although they could be a box
  /// without end.
  package init(_ bytes: ByteBuffer, in room: Range<UInt64>, of path: [FourCC] = []) throws(BoxError) {
    guard let short = bytes.getInteger(at: bytes.readerIndex, as: UInt32.self),
      let type = bytes.getInteger(at: bytes.readerIndex + 4, as: UInt32.self).map(FourCC.init)
    else { throw BoxError(.truncated, path, at: room.lowerBound) }
    guard short != 0 || type.rawValue != 0 else { throw BoxError(.blank, path, at: room.lowerBound) }
    let available = room.upperBound - room.lowerBound
    let size: UInt64
    switch short {
    case 0: (size, length, extent) = (available, 8, .open)
    case 1:
      guard let long = bytes.getInteger(at: bytes.readerIndex + 8, as: UInt64.self) else {
        throw BoxError(.truncated, path + [type], at: room.lowerBound)
      }
      (size, length, extent) = (long, 16, .stated)
    default: (size, length, extent) = (UInt64(short), 8, .stated)
    }
    guard size >= length else { throw BoxError(.small(size: size), path + [type], at: room.lowerBound) }
    guard size <= available else {
      throw BoxError(.cut(size: size, room: available), path + [type], at: room.lowerBound)
    }
    self.type = type
    range = room.lowerBound..<room.lowerBound + size
  }
}

extension FourCC {
  /// Box types on the outermost level of such files.
  package static let outermost: Set<FourCC> = [
    "ftyp", "styp", "moov", "mdat", "moof", "mfra", "free", "skip", "wide", "uuid", "sidx", "ssix", "pdin", "prft",
    "emsg", "meta",
  ]
}
