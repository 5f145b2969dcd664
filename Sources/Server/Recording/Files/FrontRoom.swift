internal import FMP4
internal import Glibc
internal import NIOCore

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
/// The boxes alone tell whether a file has it. Waits for the disk.
struct FrontRoom: Sendable, Hashable {
  /// Bytes of the file before the first that was recorded: `ftyp` and `free`.
  let length: Int

  /// What is kept unless it is known that less will do: the head of eleven hours of 30 pictures a second with B-frames
  /// and of sound, 3 MB an hour.
  static let usual = 32 << 20
  /// Lengths are multiples of this, as long as the largest blocks in which file systems can share a file's bytes.
  static let unit = 64 << 10

  // MARK: The beginning

  /// What ends the room, so that it is known again: `weir-fr1` and its length. It stays where it is when the head is
  /// written, just before the header of `mdat`.
  private static let magic = "weir-fr1"
  private static let markSize = 16
  /// Of an `mdat` with its size in 64 bits.
  private static let mediaHeaderSize = 16
  /// An `ftyp` with more brands is none of weir's.
  private static let largestFileType = 256

  /// `ftyp` and what follows it.
  static func parts(of initSegment: ByteBuffer) -> (fileType: ByteBuffer, rest: ByteBuffer)? {
    var rest = initSegment
    guard let size = rest.getInteger(at: rest.readerIndex, as: UInt32.self), size <= largestFileType,
      rest.getString(at: rest.readerIndex + 4, length: 4) == "ftyp", let type = rest.readSlice(length: Int(size))
    else { return nil }
    return (type, rest)
  }

  /// What is written of the room, and where: its two ends. What lies between is never written.
  func beginning(_ fileType: ByteBuffer) -> [(offset: Int, bytes: ByteBuffer)] {
    var start = fileType
    start.writeInteger(UInt32(clamping: length - fileType.readableBytes))
    start.writeString("free")
    var end = ByteBuffer()
    end.writeString(Self.magic)
    end.writeInteger(UInt64(length))
    end.writeRepeatingByte(0, count: Self.mediaHeaderSize)
    return [(0, start), (length - end.readableBytes, end)]
  }

  /// Of a file of `size` bytes that is no movie yet; nil where it keeps no room. A file that ends within its room holds
  /// nothing.
  static func find(in descriptor: CInt, size: UInt64, path: String) throws(RecordingError) -> FrontRoom? {
    try find(size: size) { offset, count throws(RecordingError) in
      try RecordingFile.read(from: descriptor, at: offset, count: count, path: path)
    }
  }

  static func find<E>(
    size: UInt64, _ read: (_ offset: UInt64, _ count: Int) throws(E) -> ByteBuffer
  ) throws(E) -> FrontRoom? {
    let start = try read(0, largestFileType + 8)
    guard let (_, rest) = parts(of: start), let free = rest.getInteger(at: rest.readerIndex, as: UInt32.self),
      rest.getString(at: rest.readerIndex + 4, length: 4) == "free"
    else { return nil }
    let length = start.readableBytes - rest.readableBytes + Int(free)
    guard length > 0, length % unit == 0 else { return nil }
    // Its writer ended before it wrote the rest.
    if size <= UInt64(length) { return FrontRoom(length: length) }
    let mark = try read(UInt64(length - markSize - mediaHeaderSize), markSize)
    guard mark.getString(at: mark.readerIndex, length: 8) == magic,
      mark.getInteger(at: mark.readerIndex + 8, as: UInt64.self) == UInt64(length)
    else { return nil }
    return FrontRoom(length: length)
  }

  // MARK: The end

  /// What goes into the room to make a movie of a file with so many recorded bytes; nil where it is not large enough.
  func head(_ builder: MovieBuilder, contentLength: UInt64) -> MovieBuilder.ParcelledHead? {
    builder.head(contentLength: contentLength, filling: length, sparing: Self.markSize)
  }

  /// Puts the head where it belongs, durably; what was recorded must be so. Until its first sector is there, which goes
  /// last and which a disk writes whole or not at all, the file is what it was.
  func fill(
    with head: MovieBuilder.ParcelledHead, of descriptor: CInt, path: String, calls: DiskCalls
  ) throws(HeadInsertion.Failure) {
    var rest = head.front
    let first = rest.readSlice(length: min(HeadInsertion.sector, rest.readableBytes)) ?? head.front
    let before: ByteBuffer
    do throws(RecordingError) {
      before = try RecordingFile.read(from: descriptor, at: 0, count: first.readableBytes, path: path)
      try RecordingFile.write(rest, to: descriptor, at: UInt64(first.readableBytes), path: path, calls: calls)
      let end = UInt64(length - head.mediaHeader.readableBytes)
      try RecordingFile.write(head.mediaHeader, to: descriptor, at: end, path: path, calls: calls)
      try Self.sync(descriptor, path, calls)
    } catch {
      throw HeadInsertion.Failure(error: error, remains: .nothing)
    }
    do throws(RecordingError) {
      try RecordingFile.write(first, to: descriptor, at: 0, path: path, calls: calls)
      try Self.sync(descriptor, path, calls)
    } catch {
      // The disk may have either, and either is whole.
      let isBack = (try? RecordingFile.write(before, to: descriptor, at: 0, path: path, calls: calls)) != nil
      throw HeadInsertion.Failure(error: error, remains: isBack ? .nothing : .head)
    }
  }

  private static func sync(_ descriptor: CInt, _ path: String, _ calls: DiskCalls) throws(RecordingError) {
    let code = calls.sync(descriptor)
    guard code == 0 else { throw .system("make durable", path, errno: code) }
  }
}
