internal import Glibc
internal import Storage

/// The system calls that write a recording's file, insert its moov, and read the free space of its disk. Tests replace them with
/// calls that fail, and with a disk that fills up.
package struct DiskCalls: Sendable {
  /// `fallocate`: 0, or errno.
  var allocate: @Sendable (_ file: CInt, _ mode: CInt, _ offset: Int, _ length: Int) -> CInt = {
    file, mode, offset, length in
    while fallocate(file, mode, off_t(offset), off_t(length)) != 0 {
      if errno != EINTR { return errno }
    }
    return 0
  }
  /// `pwrite`.
  var write = File.writing
  /// `fdatasync`: 0, or errno. Never repeated after a failure: the system then treats the bytes it could not write as written.
  var sync: @Sendable (_ file: CInt) -> CInt = { fdatasync($0) == 0 ? 0 : errno }
  /// `fstatvfs`: free bytes of the folder's file system for an unprivileged user. Nil if it does not report them.
  package var freeBytes: @Sendable (_ folder: RecordingFolder) -> Int64? = { $0.freeBytes }

  package static let system = DiskCalls()
}
