internal import Glibc
package import NIOCore
internal import SystemPackage

/// Reads and writes an open file at byte offsets. The caller opens and closes it. Every call may block on the disk.
package struct File: Sendable {
  private let file: SystemPackage.FileDescriptor

  package init(_ descriptor: CInt) {
    file = SystemPackage.FileDescriptor(rawValue: descriptor)
  }

  // MARK: Bytes

  /// Up to `count` bytes at `offset`; fewer at the end of the file.
  package func read(at offset: Int, count: Int) throws(StorageError) -> ByteBuffer {
    var bytes = ByteBuffer()
    try read(into: &bytes, at: offset, count: count)
    return bytes
  }

  /// Exactly `count` bytes; nil when there are fewer.
  package func readAll(at offset: Int, count: Int) -> ByteBuffer? {
    guard let bytes = try? read(at: offset, count: count), bytes.readableBytes == count else { return nil }
    return bytes
  }

  /// Appends up to `count` bytes from `offset` to `bytes`. Returns the number of bytes read.
  @discardableResult
  package func read(into bytes: inout ByteBuffer, at offset: Int, count: Int) throws(StorageError) -> Int {
    var done = 0
    while done < count {
      do {
        let got = try bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: count - done) { room in
          let room = UnsafeMutableRawBufferPointer(rebasing: room.prefix(count - done))
          return try file.read(fromAbsoluteOffset: Int64(offset &+ done), into: room)
        }
        if got == 0 { break }
        done += got
      } catch {
        throw StorageError(operation: "read", errno: (error as? Errno)?.rawValue ?? EIO)
      }
    }
    return done
  }

  /// A write call: returns the bytes written, or the negated errno.
  package typealias Writing = @Sendable (_ file: CInt, _ bytes: UnsafeRawBufferPointer, _ offset: Int) -> Int

  /// The default write call, `pwrite`.
  package static let writing: Writing = { file, bytes, offset in
    let count = pwrite(file, bytes.baseAddress, bytes.count, off_t(offset))
    return count < 0 ? -Int(errno) : count
  }

  /// Writes all bytes at `offset`.
  package func write(_ bytes: ByteBuffer, at offset: Int, by call: Writing = writing) throws(StorageError) {
    var (left, place) = (bytes, offset)
    while left.readableBytes > 0 {
      let written = left.withUnsafeReadableBytes { call(file.rawValue, $0, place) }
      if written == -Int(EINTR) { continue }
      guard written > 0 else {
        throw StorageError(operation: "write", errno: written == 0 ? EIO : CInt(clamping: -written))
      }
      left.moveReaderIndex(forwardBy: written)
      place += written
    }
  }

  /// Copies a range of another file to `offset`, within the kernel.
  package func write(_ range: FileRange, at offset: Int) throws(StorageError) {
    guard lseek(file.rawValue, off_t(offset), SEEK_SET) >= 0 else {
      throw StorageError(operation: "seek", errno: errno)
    }
    var place = off_t(range.position)
    var left = range.length
    while left > 0 {
      let sent = sendfile(file.rawValue, range.file.descriptor, &place, left)
      if sent < 0, errno == EINTR { continue }
      guard sent > 0 else { throw StorageError(operation: "write", errno: sent == 0 ? EIO : errno) }
      left -= sent
    }
  }

  // MARK: Blocks

  /// Shares blocks of another file: its bytes from `offset` to its end appear in this file at `start`, without a copy (XFS,
  /// btrfs). False when the file system cannot share blocks. Both offsets are multiples of the block size.
  package func share(_ source: CInt, from offset: UInt64, at start: Int) -> Bool {
    clone(source, from: offset, at: UInt64(clamping: start)) == 0
  }

  /// Whether the file system can share blocks. Call on an empty file; tries to share no bytes.
  package var canShare: Bool {
    ![EOPNOTSUPP, ENOTTY, ENOSYS].contains(clone(file.rawValue, from: 0, at: 0))
  }

  /// FICLONERANGE. Returns 0, or errno.
  private func clone(_ source: CInt, from offset: UInt64, at start: UInt64) -> CInt {
    var range = CloneRange(source: Int64(source), sourceOffset: offset, length: 0, targetOffset: start)
    return withUnsafeMutablePointer(to: &range) { ioctl(file.rawValue, CloneRange.request, $0) } == 0 ? 0 : errno
  }

  /// Space of the file system, in bytes.
  package struct Space: Sendable {
    /// Free space for an unprivileged user.
    package let free: Int64
    package let total: Int64
    /// The block size: the unit for inserted ranges and shared blocks.
    package let block: Int
  }

  /// Nil when the file system does not report it.
  package var space: Space? {
    var status = statvfs()
    guard fstatvfs(file.rawValue, &status) == 0 else { return nil }
    let unit = UInt64(status.f_frsize)
    return Space(
      free: Int64(clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: unit).partialValue),
      total: Int64(clamping: UInt64(status.f_blocks).multipliedReportingOverflow(by: unit).partialValue),
      block: status.f_bsize > 0 ? Int(status.f_bsize) : 4096)
  }
}

/// `struct file_clone_range` of linux/fs.h.
private struct CloneRange {
  var source: Int64
  var sourceOffset: UInt64
  /// 0 stands for the end of the file.
  var length: UInt64
  var targetOffset: UInt64

  /// FICLONERANGE, `_IOW(0x94, 13, struct file_clone_range)`.
  static let request: UInt = 0x4020_940D
}
