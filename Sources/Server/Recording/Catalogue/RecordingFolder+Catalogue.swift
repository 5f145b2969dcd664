internal import FMP4
internal import Glibc
internal import NIOCore

/// What the catalogue asks of a stream's folder, and does there.
extension RecordingFolder {
  /// Holds what was deleted and can still be restored.
  static let deletedName = ".deleted"
  /// Holds the pictures that were made of recordings.
  static let thumbnailsName = ".thumbnails"

  /// What a file's inode tells.
  struct FileLook: Sendable, Hashable {
    var bytes: Int
    /// Nanoseconds since 1970, of the contents.
    var modifiedAt: Int64
    /// Nanoseconds since 1970, of the inode: a file that was moved changes here.
    var changedAt: Int64
    /// Nobody may write it: that is how a protected recording says so, whatever becomes of the catalogue.
    var isReadOnly: Bool
  }

  /// Nil when there is no regular file of that name.
  func look(at name: String) -> FileLook? {
    guard let status = status(of: name) else { return nil }
    return FileLook(
      bytes: Int(status.st_size), modifiedAt: Self.nanoseconds(status.st_mtim),
      changedAt: Self.nanoseconds(status.st_ctim), isReadOnly: status.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH) == 0)
  }

  private static func nanoseconds(_ time: timespec) -> Int64 {
    Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }

  /// What a movie says of itself; nothing where it is none.
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

  /// What a finished recording tells whoever has nothing but its file.
  struct MovieContents: Sendable {
    /// Of media.
    var seconds = 0.0
    /// RFC 6381, of each track.
    var codecs: [String] = []
    /// Nil where it was made before there were remarks, or by somebody else.
    var metadata: RecordingMetadata?
  }

  /// Whether a recording has that name, also one that was deleted and can be restored: it would stand in a new one's way,
  /// and that one in its way.
  func isTaken(_ name: RecordingName) -> Bool {
    let deleted = [name.finished, name.unfinished].map { "\(Self.deletedName)/\($0)" }
    return contains(name.finished) || deleted.contains(where: contains)
  }

  /// Moves a file to another folder, where nothing of its name may be, and makes that durable.
  func move(_ name: String, to other: RecordingFolder) throws(RecordingError) {
    guard renameat2(descriptor, name, other.descriptor, name, UInt32(RENAME_NOREPLACE)) == 0 else {
      throw .system("move to \(other.path) the file", "\(path)/\(name)", errno: errno)
    }
    fsync(other.descriptor)
    fsync(descriptor)
  }

  /// Lets everybody who may read the file read it, and its owner write it or nobody.
  func setReadOnly(_ isReadOnly: Bool, _ name: String) throws(RecordingError) {
    guard fchmodat(descriptor, name, isReadOnly ? 0o444 : 0o644, 0) == 0 else {
      throw .system("change the permissions of", "\(path)/\(name)", errno: errno)
    }
  }

  /// The file is gone for good, and whatever was made of it.
  func erase(_ key: RecordingKey) {
    for name in [key.name.finished, key.name.unfinished] { remove(name) }
    removeThumbnail(of: key.name)
  }

  func removeThumbnail(of name: RecordingName) {
    unlinkat(descriptor, "\(Self.thumbnailsName)/\(name.stem).jpg", 0)
  }
}
