internal import FMP4
internal import Glibc
internal import NIOCore
internal import Storage

/// Puts a movie's head before a file's fragments, whose bytes stay where they are on the disk, and takes back what a
/// crash left of that. A crash at any point leaves the fragmented file, the movie, or a file that begins with zeros, of
/// which `takeBack` makes the fragmented one again. Waits for the disk.
struct MoovInsertion {
  let descriptor: CInt
  /// For messages.
  let path: String
  /// Where readers find the first byte of the fragments, if there may be any.
  var origin: FileOrigin?
  var calls = DiskCalls.system

  enum Outcome: Sendable {
    /// The file is a movie, durably.
    case inserted
    /// The file system cannot insert room (tmpfs, btrfs, NFS …): errno tells, whatever its name. Nothing has changed.
    case unsupported
  }

  /// Something is wrong with the disk.
  struct Failure: Error {
    var error: RecordingError
    var remains: Remains
  }

  /// What is left before the fragments when it failed.
  enum Remains: Sendable {
    case nothing
    /// Room, perhaps with some of the head, and perhaps not before all of them.
    case room
    /// The head, in the room that was kept for it (`MoovReservation`); the disk may not have it.
    case head
  }

  /// Bytes that a disk writes whole or not at all. The first ones go last: until they are there the file begins with
  /// zeros, and it is plain that it has no head yet.
  static let sector = 512

  /// The unit in which the file system can insert room and share blocks.
  static func blockSize(_ descriptor: CInt) -> Int {
    File(descriptor).space?.block ?? 4096
  }

  /// `head` is a whole number of the file system's blocks. What follows must be durable.
  func insert(_ head: ByteBuffer) throws(Failure) -> Outcome {
    let room = head.readableBytes
    let before = size
    let code = move(by: room, FALLOC_FL_INSERT_RANGE)
    guard code == 0 else {
      // A file system that fails in the midst of it has made the file longer and moved some of its pieces.
      let remains = size == before ? Remains.nothing : .room
      if remains == .nothing, ![ENOSPC, EDQUOT, EFBIG, EIO, EROFS].contains(code) { return .unsupported }
      throw Failure(error: .system("put the head into", path, errno: code), remains: remains)
    }
    var rest = head
    let first = rest.readSlice(length: min(Self.sector, room)) ?? head
    do throws(RecordingError) {
      try RecordingFile.write(rest, to: descriptor, at: UInt64(first.readableBytes), path: path, calls: calls)
      try sync()
      try RecordingFile.write(first, to: descriptor, at: 0, path: path, calls: calls)
      try sync()
    } catch {
      // A full disk has no room for the head's blocks: give the room back.
      throw Failure(error: error, remains: move(by: -room, FALLOC_FL_COLLAPSE_RANGE) == 0 ? .nothing : .room)
    }
    return .inserted
  }

  private func sync() throws(RecordingError) {
    let code = calls.sync(descriptor)
    guard code == 0 else { throw .system("make durable", path, errno: code) }
  }

  /// Of the file, in bytes; nil where the system does not tell.
  private var size: Int? {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int(status.st_size) : nil
  }

  /// 0, or why the file system did not do it.
  private func move(by count: Int, _ mode: CInt) -> CInt {
    var code: CInt = 0
    let act = {
      code = calls.allocate(descriptor, mode, 0, abs(count))
      return code == 0
    }
    // Of a file that an earlier run left nobody has read a byte yet.
    if let origin, count > 0 || origin.shift >= -count {
      _ = origin.push(by: count, act)
    } else {
      _ = act()
    }
    return code
  }

  // MARK: After a crash

  /// Of a file that has its head: its first sector went last, and whoever wrote it may have ended before it was durable,
  /// or when the sync failed and the system forgot that it has to be written. It is written again, and made durable with
  /// all that is not.
  func confirm() throws(RecordingError) {
    let first = try read(at: 0, count: Self.sector)
    try RecordingFile.write(first, to: descriptor, at: 0, path: path, calls: calls)
    try sync()
  }

  /// Removes room that was inserted and does not begin with a head. `length` is the file's. Returns how many bytes went.
  func takeBack(length: UInt64) throws(RecordingError) -> UInt64 {
    guard length > UInt64(Self.sector), try read(at: 0, count: 8).readableBytesView.allSatisfy({ $0 == 0 }),
      let start = try beginning(length)
    else { return 0 }
    let code = move(by: -Int(clamping: start), FALLOC_FL_COLLAPSE_RANGE)
    guard code == 0 else { throw .system("remove the unfinished head of", path, errno: code) }
    try sync()
    return start
  }

  /// A file system moves a file's pieces one after another, and a power failure may come between them: a hole parts
  /// those that have moved from those that have not. Closes it, so that the file is what it was before. To be called
  /// where a file of that length is not whole: there may be another reason for the hole, and then nothing is gained.
  /// Returns how many bytes went.
  func closeHole(length: UInt64) throws(RecordingError) -> UInt64 {
    let hole = lseek(descriptor, 0, SEEK_HOLE)
    guard hole > 0, UInt64(hole) < length else { return 0 }
    let data = lseek(descriptor, hole, SEEK_DATA)
    guard data > hole, UInt64(data - hole) <= Self.largestRoom else { return 0 }
    guard calls.allocate(descriptor, FALLOC_FL_COLLAPSE_RANGE, Int(hole), Int(data - hole)) == 0 else { return 0 }
    try sync()
    return UInt64(data - hole)
  }

  /// Where the fragmented file begins behind the room: at a multiple of a sector, as file systems have no smaller blocks.
  func beginning(_ length: UInt64) throws(RecordingError) -> UInt64? {
    var position = UInt64(Self.sector)
    while position < min(length, Self.largestRoom) {
      let window = try read(at: position, count: Self.windowSize)
      for offset in stride(from: 0, to: window.readableBytes, by: Self.sector) {
        let start = position + UInt64(offset)
        guard let head = window.getSlice(at: window.readerIndex + offset, length: Self.headSize) else { break }
        let isThere = try FileOutline.begins(at: start, before: length, with: head) {
          offset, count throws(RecordingError) in
          try read(at: offset, count: count)
        }
        if isThere { return start }
      }
      position += UInt64(Self.windowSize)
    }
    return nil
  }

  /// No head is larger: it would be that of a month of pictures and audio.
  private static let largestRoom: UInt64 = 1 << 30
  private static let windowSize = 256 << 10
  /// Bytes by which a file's beginning is known.
  private static let headSize = 16

  private func read(at offset: UInt64, count: Int) throws(RecordingError) -> ByteBuffer {
    try RecordingFile.read(from: descriptor, at: offset, count: count, path: path)
  }
}
