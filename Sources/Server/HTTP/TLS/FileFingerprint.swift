internal import Glibc

/// What tells that a file has been replaced or written to, without reading it. Links are followed.
struct FileFingerprint: Equatable {
  private var device: UInt
  private var inode: UInt
  private var size: Int
  private var seconds: Int
  private var nanoseconds: Int

  /// Nil for a file that is not there.
  init?(of path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    device = UInt(status.st_dev)
    inode = UInt(status.st_ino)
    size = Int(status.st_size)
    seconds = status.st_mtim.tv_sec
    nanoseconds = status.st_mtim.tv_nsec
  }
}
