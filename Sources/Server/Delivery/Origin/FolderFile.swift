internal import Glibc
internal import NIOCore
internal import Storage

/// Writes files that appear complete or not at all. Blocks on the disk.
enum FolderFile {
  static func makeFolder(_ path: String) throws(StorageError) {
    guard mkdir(path, 0o755) == 0 || errno == EEXIST else {
      throw StorageError(operation: "mkdir \(path)", errno: errno)
    }
  }

  /// The suffix of a file that is not complete yet.
  static let unfinished = ".tmp"

  /// Writes the pieces to a new file beside `path` and renames it to `path`.
  static func replace(_ path: String, _ pieces: [BodyPiece]) throws(StorageError) {
    let temporary = path + unfinished
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o644)
    guard descriptor >= 0 else { throw StorageError(operation: "open \(temporary)", errno: errno) }
    defer { close(descriptor) }
    let file = File(descriptor)
    var end = 0
    do throws(StorageError) {
      for piece in pieces {
        switch piece {
        case .bytes(let bytes): try file.write(bytes, at: end)
        case .file(let range): try file.write(range, at: end)
        }
        end += piece.length
      }
    } catch {
      throw StorageError(operation: "write \(temporary)", errno: error.errno)
    }
    guard rename(temporary, path) == 0 else { throw StorageError(operation: "rename \(temporary)", errno: errno) }
  }
}
