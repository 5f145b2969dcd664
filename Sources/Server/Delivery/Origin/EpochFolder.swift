internal import Glibc
internal import Storage

/// The folder of one epoch below `--segments`. It holds a marker file. The process that writes the folder keeps the marker
/// locked.
struct EpochFolder: ~Copyable {
  /// The name begins with a dot: web servers do not list or serve such files by default.
  static let marker = ".weir-epoch"

  /// Whether a name can be that of an epoch: a wall-clock millisecond in base 36.
  static func isName(_ name: String) -> Bool {
    (6...13).contains(name.utf8.count)
      && name.utf8.allSatisfy {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
      }
  }

  private let lock: CInt

  /// Creates and marks the folder, and locks the marker while this value lives. Blocks on the disk.
  init(making path: String) throws(StorageError) {
    try FolderFile.makeFolder(path)
    let marker = "\(path)/\(Self.marker)"
    let descriptor = open(marker, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644)
    guard descriptor >= 0 else { throw StorageError(operation: "open \(marker)", errno: errno) }
    _ = flock(descriptor, LOCK_EX | LOCK_NB)
    lock = descriptor
  }

  deinit {
    close(lock)
  }

  /// Whether the folder has a marker that no running process locks.
  static func isLeft(_ path: String) -> Bool {
    let descriptor = open("\(path)/\(marker)", O_RDWR | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return flock(descriptor, LOCK_EX | LOCK_NB) == 0
  }
}
