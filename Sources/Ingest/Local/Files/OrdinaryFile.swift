internal import Glibc
internal import NIOCore

/// A regular file of this machine, open for reading. It is closed when it is released.
final class OrdinaryFile {
  /// Bytes.
  let size: Int
  private let path: String
  private let descriptor: Int32

  /// Throws if there is none, or if it is something else: a folder, a device.
  init(_ path: String) throws(FileError) {
    self.path = path
    // Looked at before it is opened: that alone may block, or change a device.
    var status = stat()
    guard stat(path, &status) == 0 else { throw .unreadable(path, code: errno) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .noFile(path) }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw .unreadable(path, code: errno) }
    self.descriptor = descriptor
    size = fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
  }

  deinit { close(descriptor) }

  /// Its first bytes: so many, or all if it has fewer.
  func beginning(_ count: Int) throws(FileError) -> ByteBuffer {
    var bytes = ByteBuffer()
    let most = min(count, size)
    bytes.reserveCapacity(most)
    while bytes.readableBytes < most {
      let place = bytes.readableBytes
      var code: Int32 = 0
      let more = bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: most - place) { room in
        let count = pread(descriptor, room.baseAddress, min(room.count, most - place), off_t(place))
        if count < 0 { code = errno }
        return max(count, 0)
      }
      guard code == 0 || code == EINTR else { throw .unreadable(path, code: code) }
      // It became shorter.
      if more == 0, code == 0 { break }
    }
    return bytes
  }
}
