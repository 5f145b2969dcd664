package import Glibc
package import Publishing
package import Storage
internal import Synchronization

/// An open folder: the recordings folder, or the folder of a stream in it. Its files are opened by single names without following
/// links, so no link can lead outside.
package final class RecordingFolder: Sendable {
  package let descriptor: CInt
  /// For messages.
  package let path: String
  /// The parent folder, while this folder is new and a power failure could still remove it.
  private let parent: Mutex<RecordingFolder?>

  private init(taking descriptor: CInt, path: String, in parent: RecordingFolder? = nil) {
    self.descriptor = descriptor
    self.path = path
    self.parent = Mutex(parent)
  }

  deinit {
    close(descriptor)
  }

  /// The recordings folder.
  package static func open(_ path: String) throws(RecordingError) -> RecordingFolder {
    let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system("open the folder", path, errno: errno) }
    return RecordingFolder(taking: descriptor, path: path)
  }

  /// Whether both are open on the same folder: a path may lead to another one later.
  package func isSame(as other: RecordingFolder) -> Bool {
    if self === other { return true }
    var (mine, others) = (stat(), stat())
    return path == other.path && fstat(descriptor, &mine) == 0 && fstat(other.descriptor, &others) == 0
      && (mine.st_dev, mine.st_ino) == (others.st_dev, others.st_ino)
  }

  package enum Absence {
    case make
    case fail
  }

  /// The folder of a stream in this one.
  package func folder(of stream: StreamName, ifAbsent: Absence) throws(RecordingError) -> RecordingFolder {
    try folder(named: stream.description, ifAbsent: ifAbsent)
  }

  /// A folder in this one. `name` comes from the server: a stream's name, or a name that begins with a dot.
  package func folder(named name: String, ifAbsent: Absence) throws(RecordingError) -> RecordingFolder {
    let path = "\(path)/\(name)"
    var isNew = false
    if case .make = ifAbsent {
      isNew = mkdirat(descriptor, name, 0o755) == 0
      if !isNew, errno != EEXIST { throw .system("make the folder", path, errno: errno) }
    }
    let opened = openat(descriptor, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard opened >= 0 else { throw .system("open the folder", path, errno: errno) }
    return RecordingFolder(taking: opened, path: path, in: isNew ? self : nil)
  }

  /// Makes the names in this folder durable, and its own name.
  package func makeDurable() throws(RecordingError) {
    guard fsync(descriptor) == 0 else { throw .system("make durable the folder", path, errno: errno) }
    guard let above = parent.withLock({ $0 }) else { return }
    try above.makeDurable()
    parent.withLock { $0 = nil }
  }

  /// The names in the folder, sorted, without those that begin with a dot.
  func names() throws(RecordingError) -> [String] { try names(ending: "").sorted() }

  /// The names with that ending, in the file system's order. A folder may have a hundred thousand names, so no string is made for
  /// the others.
  package func names(ending: StaticString) throws(RecordingError) -> [String] {
    let copy = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard copy >= 0, let listing = fdopendir(copy) else {
      let code = errno
      if copy >= 0 { close(copy) }
      throw .system("list the folder", path, errno: code)
    }
    defer { closedir(listing) }
    var names: [String] = []
    let ending = UnsafeBufferPointer(start: ending.utf8Start, count: ending.utf8CodeUnitCount)
    while let entry = readdir(listing) {
      withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        let name = bytes[..<(bytes.firstIndex(of: 0) ?? bytes.endIndex)]
        guard name.first != UInt8(ascii: "."), name.suffix(ending.count).elementsEqual(ending) else { return }
        names.append(String(decoding: name, as: UTF8.self))
      }
    }
    return names
  }

  /// The streams that have a folder here.
  package func streams() throws(RecordingError) -> [StreamName] {
    try names().compactMap { StreamName($0) }
  }

  /// A descriptor of a regular file; nil if there is none of that name. Flags against following links and against waiting (named
  /// pipes) are added to `flags`.
  package func openFile(_ name: String, _ flags: CInt) -> (descriptor: CInt, status: stat)? {
    let opened = openat(descriptor, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard opened >= 0 else { return nil }
    var status = stat()
    guard fstat(opened, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(opened)
      return nil
    }
    return (opened, status)
  }

  /// The status of a regular file; nil if there is none of that name.
  package func status(of name: String) -> stat? {
    var status = stat()
    guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT == S_IFREG else {
      return nil
    }
    return status
  }

  package func contains(_ name: String) -> Bool {
    faccessat(descriptor, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0
  }

  package func remove(_ name: String) {
    unlinkat(descriptor, name, 0)
  }

  /// Renames a file and makes that durable.
  func rename(_ name: String, to other: String) throws(RecordingError) {
    guard renameat(descriptor, name, descriptor, other) == 0 else {
      throw .system("rename to \(other) the file", "\(path)/\(name)", errno: errno)
    }
    try makeDurable()
  }

  /// Sizes of its file system.
  package var space: File.Space? { File(descriptor).space }

  /// Bytes that an unprivileged user may still write to this file system.
  var freeBytes: Int64? { space?.free }
}
