internal import Glibc
internal import NIOCore
internal import Storage

/// Files that appear whole or not at all. Blocks on the disk: for threads that may.
enum FolderFile {
  static func makeFolder(_ path: String) throws(StorageError) {
    guard mkdir(path, 0o755) == 0 || errno == EEXIST else {
      throw StorageError(operation: "mkdir \(path)", errno: errno)
    }
  }

  /// What a name ends with until its file is whole.
  static let unfinished = ".tmp"

  /// Writes the pieces to a new file beside `path` and renames it into place.
  static func replace(_ path: String, _ pieces: [BodyPiece]) throws(StorageError) {
    let temporary = path + unfinished
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o644)
    guard descriptor >= 0 else { throw StorageError(operation: "open \(temporary)", errno: errno) }
    defer { close(descriptor) }
    for piece in pieces {
      switch piece {
      case .bytes(let buffer): try write(buffer, to: descriptor, path: temporary)
      case .file(let range): try copy(range, to: descriptor, path: temporary)
      }
    }
    guard rename(temporary, path) == 0 else { throw StorageError(operation: "rename \(temporary)", errno: errno) }
  }

  private static func write(_ buffer: ByteBuffer, to descriptor: CInt, path: String) throws(StorageError) {
    var rest = buffer.readableBytesView[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 {
        if errno == EINTR { continue }
        throw StorageError(operation: "write \(path)", errno: errno)
      }
      rest = rest.dropFirst(count)
    }
  }

  private static func copy(_ range: FileRange, to descriptor: CInt, path: String) throws(StorageError) {
    var offset = off_t(range.position)
    var left = range.length
    while left > 0 {
      let count = sendfile(descriptor, range.file.descriptor, &offset, left)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw StorageError(operation: "write \(path)", errno: count < 0 ? errno : EIO) }
      left -= count
    }
  }
}
