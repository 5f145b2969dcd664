package import NIOCore

/// What stands before a box's payload: its size and type (ISO/IEC 14496-12 §4.2.2), and where that is. It lies within
/// what it was read of, so that no sum of its numbers overflows. Nothing else reads a box's size.
package struct BoxHeader: Sendable, Hashable {
  package let type: FourCC
  /// Bytes of the file that the whole box has, of which `length` are its header.
  package let range: Range<UInt64>
  /// Bytes of this header: 8, or 16 where the size needs 64 bits.
  package let length: UInt64
  package let extent: Extent

  package enum Extent: Sendable, Hashable {
    case stated
    /// It has no size of its own, and reaches to the end of what it lies in.
    case open
  }

  /// Bytes of the shortest header, which are the shortest box, and bytes that hold any header.
  package static let shortest = 8
  package static let longest = 16

  /// Bytes of the whole box; never fewer than `length`.
  package var size: UInt64 { range.upperBound - range.lowerBound }
  package var payload: Range<UInt64> { range.lowerBound + length..<range.upperBound }
  package var payloadSize: UInt64 { size - length }

  /// Reads the header with which `bytes` begin: 16, or as many as there are. The box begins where `room` does and ends
  /// within it; `path` are the boxes that hold it. Eight zeros are no box, though they may stand for one without end.
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
  /// What stands in files of this kind on the outermost level.
  static let outermost: Set<FourCC> = [
    "ftyp", "styp", "moov", "mdat", "moof", "mfra", "free", "skip", "wide", "uuid", "sidx", "ssix", "pdin", "prft",
    "emsg", "meta",
  ]
}
