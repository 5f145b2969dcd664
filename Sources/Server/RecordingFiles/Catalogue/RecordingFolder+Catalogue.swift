internal import Base
package import FMP4
internal import Glibc
internal import NIOCore

/// Operations of the catalogue on a stream's folder.
extension RecordingFolder {
  /// Folder of deleted recordings that can still be restored.
  static let deletedName = ".deleted"
  /// Folder of the recordings' thumbnails.
  package static let thumbnailsName = ".thumbnails"

  /// Status of a file.
  package struct FileLook: Sendable, Hashable {
    package var bytes: Int
    /// Modification time of the contents.
    package var modifiedAt: WallTime
    /// Change time of the inode. Moving a file changes it.
    var changedAt: WallTime
    /// No write permission: marks a protected recording, independently of the catalogue.
    var isReadOnly: Bool
  }

  /// Nil if there is no regular file of that name.
  package func look(at name: String) -> FileLook? {
    guard let status = status(of: name) else { return nil }
    return FileLook(
      bytes: Int(status.st_size), modifiedAt: WallTime(nanoseconds: status.st_mtim.nanoseconds),
      changedAt: WallTime(nanoseconds: status.st_ctim.nanoseconds),
      isReadOnly: status.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH) == 0)
  }

  /// The contents of a movie; empty if the file is none.
  func contents(of name: String) -> MovieContents {
    guard let (file, status) = openFile(name, O_RDONLY) else { return MovieContents() }
    defer { close(file) }
    let (seconds, codecs) = Self.outline(file, status)
    return MovieContents(
      seconds: seconds, codecs: codecs, metadata: RecordingMetadata.read(file, size: UInt64(clamping: status.st_size)))
  }

  private static func outline(_ file: CInt, _ status: stat) -> (seconds: Double, codecs: [String]) {
    var outline = MovieOutline(fileSize: UInt64(clamping: status.st_size))
    while case .read(let offset, let length) = outline.step {
      outline.receive((try? RecordingFile.read(from: file, at: offset, count: length, path: "")) ?? ByteBuffer())
    }
    return (outline.duration?.seconds ?? 0, outline.codecs)
  }

  /// What the file of a finished recording tells about it.
  struct MovieContents: Sendable {
    /// Seconds of media.
    var seconds = 0.0
    /// RFC 6381, one for each track.
    var codecs: [String] = []
    /// Nil if the file is older than this metadata, or of another program.
    var metadata: RecordingMetadata?
  }

  /// Whether a recording has that name, including deleted ones that can be restored: both would need the same name.
  func isTaken(_ name: RecordingName) -> Bool {
    let deleted = [name.finished, name.unfinished].map { "\(Self.deletedName)/\($0)" }
    return contains(name.finished) || deleted.contains(where: contains)
  }

  /// Moves a file to another folder, durably. Fails if the name exists there.
  func move(_ name: String, to other: RecordingFolder) throws(RecordingError) {
    guard renameat2(descriptor, name, other.descriptor, name, UInt32(RENAME_NOREPLACE)) == 0 else {
      throw .system("move to \(other.path) the file", "\(path)/\(name)", errno: errno)
    }
    fsync(other.descriptor)
    fsync(descriptor)
  }

  /// Makes the file readable for everyone, and writable for its owner or for no user.
  func setReadOnly(_ isReadOnly: Bool, _ name: String) throws(RecordingError) {
    guard fchmodat(descriptor, name, isReadOnly ? 0o444 : 0o644, 0) == 0 else {
      throw .system("change the permissions of", "\(path)/\(name)", errno: errno)
    }
  }

  /// Removes the file and its thumbnail for good.
  func erase(_ key: RecordingKey) {
    for name in [key.name.finished, key.name.unfinished] { remove(name) }
    removeThumbnail(of: key.name)
  }

  func removeThumbnail(of name: RecordingName) {
    unlinkat(descriptor, "\(Self.thumbnailsName)/\(name.stem).jpg", 0)
  }
}
