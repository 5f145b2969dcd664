package import FMP4
package import NIOCore

/// Space that a file reserves before its fragments from the start. It is for file systems that cannot insert space
/// later and cannot share blocks (tmpfs, ext2, ext3, NFS …). The space is a hole in a `free` box: it takes no disk
/// space, and players skip it. When the recording ends, the movie header is written into it. No byte of the media is
/// read, written or moved for that. At each moment the file is either the fragmented one or the movie.
///
/// | | |
/// |---|---|
/// | while it is written | `ftyp`, `free`, `moov` without samples, fragments |
/// | afterwards | `ftyp`, `moov`, `free`, `mdat`, which encloses all that followed the space |
///
/// The boxes alone show whether a file has it.
package struct MoovReservation: Sendable, Hashable {
  /// Bytes of the file before the first recorded one: `ftyp` and `free`.
  package let length: Int

  package init(length: Int) {
    self.length = length
  }

  /// Usual size in bytes, unless less is known to be enough. It holds the movie header of eleven hours of 30 frames per second
  /// with B-frames and of audio, at 3 MB an hour.
  package static let usual = 32 << 20
  /// Lengths are multiples of this many bytes: the largest blocks by which file systems share a file's bytes.
  package static let unit = 64 << 10

  /// Mark at the end of the space, by which it is recognised: `weir-fr1` and the length. It stays in place when the
  /// movie header is written, just before the `mdat` header.
  private static let magic = "weir-fr1"
  private static let markSize = 16
  /// Largest `ftyp` in bytes; weir writes no longer one.
  private static let largestFileType = 256

  /// Splits an init segment into `ftyp` and the rest.
  package static func parts(of initSegment: ByteBuffer) -> (fileType: ByteBuffer, rest: ByteBuffer)? {
    var rest = initSegment
    guard let header = try? BoxHeader(rest, in: 0..<UInt64(rest.readableBytes)), header.type == "ftyp",
      header.size <= largestFileType, let type = rest.readSlice(length: Int(header.size))
    else { return nil }
    return (type, rest)
  }

  /// The bytes to write at both ends of the space, with their offsets. The space between them is never written.
  package func beginning(_ fileType: ByteBuffer) -> [(offset: Int, bytes: ByteBuffer)] {
    var start = fileType
    start.writeInteger(UInt32(clamping: length - fileType.readableBytes))
    start.writeString("free")
    var end = ByteBuffer()
    end.writeString(Self.magic)
    end.writeInteger(UInt64(length))
    end.writeRepeatingByte(0, count: MovieBuilder.mediaHeaderSize)
    return [(0, start), (length - end.readableBytes, end)]
  }

  /// Finds the reserved space of a file of `size` bytes that is not a movie yet. Nil if it has none. A file that ends
  /// within its reserved space holds nothing else.
  package static func find<E: Error>(size: UInt64, _ read: ByteSource<E>) throws(E) -> MoovReservation? {
    let start = try read(0, largestFileType + BoxHeader.shortest)
    guard let (type, rest) = parts(of: start),
      let free = try? BoxHeader(rest, in: UInt64(type.readableBytes)..<UInt64.max), free.type == "free",
      free.length == BoxHeader.shortest, free.range.upperBound % UInt64(unit) == 0
    else { return nil }
    let length = Int(clamping: free.range.upperBound)
    // The process that wrote it ended before it wrote the rest.
    if size <= free.range.upperBound { return MoovReservation(length: length) }
    let mark = try read(UInt64(length - markSize - MovieBuilder.mediaHeaderSize), markSize)
    guard mark.getString(at: mark.readerIndex, length: 8) == magic,
      mark.getInteger(at: mark.readerIndex + 8, as: UInt64.self) == UInt64(length)
    else { return nil }
    return MoovReservation(length: length)
  }

  /// The movie header that makes a movie of a file with `contentLength` recorded bytes. Nil if the space is too small.
  package func movieHeader(_ builder: MovieBuilder, contentLength: UInt64) -> MovieBuilder.SplitHeader? {
    builder.movieHeader(contentLength: contentLength, filling: length, sparing: Self.markSize)
  }
}
