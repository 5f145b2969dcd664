internal import Glibc
internal import NIOCore
internal import RecordingFormat
internal import Storage

/// Inserts a movie's moov before the fragments of a file, whose blocks stay in place on the disk. Also undoes an insertion that a
/// crash interrupted. A crash at any point leaves the fragmented file, the movie, or a file that begins with zeros. `takeBack`
/// restores the fragmented file from the last of these. Waits for the disk.
struct MoovInsertion {
  let descriptor: CInt
  /// For messages.
  let path: String
  /// Position of the first fragment byte, for readers of the file; nil where there are none.
  var origin: FileOrigin?
  var calls = DiskCalls.system

  enum Outcome: Sendable {
    /// The file is a movie, durably.
    case inserted
    /// The file system cannot insert a range (tmpfs, btrfs, NFS and others), as errno shows. Nothing has changed.
    case unsupported
  }

  /// The disk failed.
  struct Failure: Error {
    var error: RecordingError
    var remains: Remains
  }

  /// What lies before the fragments after a failure.
  enum Remains: Sendable {
    case nothing
    /// Inserted room. It may hold part of the moov, and may not lie before all fragments.
    case room
    /// The moov in its reservation (`MoovReservation`); the disk may not have it.
    case movieHeader
  }

  /// Bytes that a disk writes as a whole or not at all. The first sector is written last. Until then the file begins with zeros,
  /// which shows that it has no moov yet.
  static let sector = 512

  /// The unit in which the file system can insert a range and share blocks.
  static func blockSize(_ descriptor: CInt) -> Int {
    File(descriptor).space?.block ?? 4096
  }

  /// `movieHeader` must be a whole number of file system blocks, and the fragments must be durable.
  func insert(_ movieHeader: ByteBuffer) throws(Failure) -> Outcome {
    let room = movieHeader.readableBytes
    let before = size
    let code = move(by: room, FALLOC_FL_INSERT_RANGE)
    guard code == 0 else {
      // A file system that fails midway has made the file longer and moved some of its extents.
      let remains = size == before ? Remains.nothing : .room
      if remains == .nothing, ![ENOSPC, EDQUOT, EFBIG, EIO, EROFS].contains(code) { return .unsupported }
      throw Failure(error: .system("put the movie header into", path, errno: code), remains: remains)
    }
    var rest = movieHeader
    let first = rest.readSlice(length: min(Self.sector, room)) ?? movieHeader
    do throws(RecordingError) {
      try RecordingFile.write(rest, to: descriptor, at: UInt64(first.readableBytes), path: path, calls: calls)
      try sync()
      try RecordingFile.write(first, to: descriptor, at: 0, path: path, calls: calls)
      try sync()
    } catch {
      // A full disk has no room for the moov's blocks: remove the inserted range.
      throw Failure(error: error, remains: move(by: -room, FALLOC_FL_COLLAPSE_RANGE) == 0 ? .nothing : .room)
    }
    return .inserted
  }

  private func sync() throws(RecordingError) {
    let code = calls.sync(descriptor)
    guard code == 0 else { throw .system("make durable", path, errno: code) }
  }

  /// Size of the file in bytes; nil if the system does not report it.
  private var size: Int? {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int(status.st_size) : nil
  }

  /// 0, or the errno of the file system.
  private func move(by count: Int, _ mode: CInt) -> CInt {
    var code: CInt = 0
    let act = {
      code = calls.allocate(descriptor, mode, 0, abs(count))
      return code == 0
    }
    // No reader has read a byte yet of a file that an earlier run left.
    if let origin, count > 0 || origin.shift >= -count {
      _ = origin.push(by: count, act)
    } else {
      _ = act()
    }
    return code
  }

  // MARK: After a crash

  /// Rewrites the first sector of a file that has its moov, and makes everything durable. That sector was written last. Its
  /// writer may have ended before it was durable. Or a failed sync may have made the system forget that it is still to be
  /// written.
  func confirm() throws(RecordingError) {
    let first = try read(at: 0, count: Self.sector)
    try RecordingFile.write(first, to: descriptor, at: 0, path: path, calls: calls)
    try sync()
  }

  /// Removes an inserted range that does not begin with a moov. `length` is the file's length. Returns the bytes removed.
  func takeBack(length: UInt64) throws(RecordingError) -> UInt64 {
    guard length > UInt64(Self.sector), try read(at: 0, count: 8).readableBytesView.allSatisfy({ $0 == 0 }),
      let start = try beginning(length)
    else { return 0 }
    let code = move(by: -Int(clamping: start), FALLOC_FL_COLLAPSE_RANGE)
    guard code == 0 else { throw .system("remove the unfinished movie header of", path, errno: code) }
    try sync()
    return start
  }

  /// Closes the hole that a power failure left during an insertion. A file system moves the extents of a file one after another;
  /// a hole then separates those moved from those not moved. Closing it restores the file. To be called only if a file of that
  /// length is not whole. A hole with another cause gains nothing. Returns the bytes removed.
  func closeHole(length: UInt64) throws(RecordingError) -> UInt64 {
    let hole = lseek(descriptor, 0, SEEK_HOLE)
    guard hole > 0, UInt64(hole) < length else { return 0 }
    let data = lseek(descriptor, hole, SEEK_DATA)
    guard data > hole, UInt64(data - hole) <= Self.largestRoom else { return 0 }
    guard calls.allocate(descriptor, FALLOC_FL_COLLAPSE_RANGE, Int(hole), Int(data - hole)) == 0 else { return 0 }
    try sync()
    return UInt64(data - hole)
  }

  /// Where the fragmented file begins after the inserted room: at a multiple of a sector, the smallest block of file systems.
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

  /// Upper bound of a moov, which would be that of a month of video and audio.
  private static let largestRoom: UInt64 = 1 << 30
  private static let windowSize = 256 << 10
  /// Bytes that identify the beginning of a file.
  private static let headSize = 16

  private func read(at offset: UInt64, count: Int) throws(RecordingError) -> ByteBuffer {
    try RecordingFile.read(from: descriptor, at: offset, count: count, path: path)
  }
}
