internal import Glibc

/// Shows that a file was replaced or written, without reading it. Follows links.
struct FileFingerprint: Equatable {
  private var device: UInt
  private var inode: UInt
  private var size: Int
  private var seconds: Int
  private var nanoseconds: Int

  /// Nil for a missing file.
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
