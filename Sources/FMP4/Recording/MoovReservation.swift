package import NIOCore

/// Room that a file keeps in front of its fragments from the beginning on, where the file system can neither insert room
/// later nor share blocks (tmpfs, ext2, ext3, NFS …): a hole in a `free` box, which takes nothing of the disk and which
/// players pass over. When the recording ends the movie's head is written into it. No byte of the media is read, written
/// or moved for that, and at each moment the file is either the fragmented one or the movie.
///
/// | | |
/// |---|---|
/// | while it is written | `ftyp`, `free`, `moov` without samples, fragments |
/// | afterwards | `ftyp`, `moov`, `free`, `mdat`, which takes in all that stood behind the room |
///
/// The boxes alone tell whether a file has it.
package struct MoovReservation: Sendable, Hashable {
  /// Bytes of the file before the first that was recorded: `ftyp` and `free`.
  package let length: Int

  package init(length: Int) {
    self.length = length
  }

  /// What is kept unless it is known that less will do: the head of eleven hours of 30 pictures a second with B-frames
  /// and of audio, 3 MB an hour.
  package static let usual = 32 << 20
  /// Lengths are multiples of this, as long as the largest blocks in which file systems can share a file's bytes.
  package static let unit = 64 << 10

  /// What ends the room, so that it is known again: `weir-fr1` and its length. It stays where it is when the head is
  /// written, just before the header of `mdat`.
  private static let magic = "weir-fr1"
  private static let markSize = 16
  /// An `ftyp` with more brands is none of weir's.
  private static let largestFileType = 256

  /// `ftyp` and what follows it.
  package static func parts(of initSegment: ByteBuffer) -> (fileType: ByteBuffer, rest: ByteBuffer)? {
    var rest = initSegment
    guard let header = try? BoxHeader(rest, in: 0..<UInt64(rest.readableBytes)), header.type == "ftyp",
      header.size <= largestFileType, let type = rest.readSlice(length: Int(header.size))
    else { return nil }
    return (type, rest)
  }

  /// What is written of the room, and where: its two ends. What lies between is never written.
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

  /// Of a file of `size` bytes that is no movie yet; nil where it keeps no room. A file that
  /// ends within its room holds nothing.
  package static func find<E: Error>(size: UInt64, _ read: ByteSource<E>) throws(E) -> MoovReservation? {
    let start = try read(0, largestFileType + BoxHeader.shortest)
    guard let (type, rest) = parts(of: start),
      let free = try? BoxHeader(rest, in: UInt64(type.readableBytes)..<UInt64.max), free.type == "free",
      free.length == BoxHeader.shortest, free.range.upperBound % UInt64(unit) == 0
    else { return nil }
    let length = Int(clamping: free.range.upperBound)
    // Its writer ended before it wrote the rest.
    if size <= free.range.upperBound { return MoovReservation(length: length) }
    let mark = try read(UInt64(length - markSize - MovieBuilder.mediaHeaderSize), markSize)
    guard mark.getString(at: mark.readerIndex, length: 8) == magic,
      mark.getInteger(at: mark.readerIndex + 8, as: UInt64.self) == UInt64(length)
    else { return nil }
    return MoovReservation(length: length)
  }

  /// What goes into the room to make a movie of a file with so many recorded bytes; nil where it is not large enough.
  package func head(_ builder: MovieBuilder, contentLength: UInt64) -> MovieBuilder.ParcelledHead? {
    builder.head(contentLength: contentLength, filling: length, sparing: Self.markSize)
  }
}
