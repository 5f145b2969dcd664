internal import Glibc
internal import Storage

/// The system calls that write a recording's file and put its head in front. Tests let them fail one after another.
struct DiskCalls: Sendable {
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
  /// `fdatasync`: 0, or errno. Never asked again after it failed: the system takes what it could not write for written.
  var sync: @Sendable (_ file: CInt) -> CInt = { fdatasync($0) == 0 ? 0 : errno }

  static let system = DiskCalls()
}
