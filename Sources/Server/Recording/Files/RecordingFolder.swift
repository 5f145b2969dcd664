internal import Glibc
internal import Ingest
internal import Storage
internal import Synchronization

/// An open folder: the recordings folder, or a stream's below it. What is in it is reached by single names that are
/// never followed through links, so nothing that others put there leads outside.
final class RecordingFolder: Sendable {
  let descriptor: CInt
  /// For messages.
  let path: String
  /// The folder above, while this one was made just now and may yet be lost with a power failure.
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
  static func open(_ path: String) throws(RecordingError) -> RecordingFolder {
    let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system("open the folder", path, errno: errno) }
    return RecordingFolder(taking: descriptor, path: path)
  }

  /// Whether both are open on one folder; a path may name another by now.
  func isSame(as other: RecordingFolder) -> Bool {
    if self === other { return true }
    var (mine, others) = (stat(), stat())
    return path == other.path && fstat(descriptor, &mine) == 0 && fstat(other.descriptor, &others) == 0
      && (mine.st_dev, mine.st_ino) == (others.st_dev, others.st_ino)
  }

  enum Absence {
    case make
    case fail
  }

  /// A stream's folder below this one.
  func folder(of stream: StreamName, ifAbsent: Absence) throws(RecordingError) -> RecordingFolder {
    try folder(named: stream.description, ifAbsent: ifAbsent)
  }

  /// A folder below this one. `name` is ours: a stream's, or one of the server's own, which begin with a dot.
  func folder(named name: String, ifAbsent: Absence) throws(RecordingError) -> RecordingFolder {
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

  /// Makes the names in it durable, and its own.
  func makeDurable() throws(RecordingError) {
    guard fsync(descriptor) == 0 else { throw .system("make durable the folder", path, errno: errno) }
    guard let above = parent.withLock({ $0 }) else { return }
    try above.makeDurable()
    parent.withLock { $0 = nil }
  }

  /// The names in it, without those that begin with a dot, sorted.
  func names() throws(RecordingError) -> [String] { try names(ending: "").sorted() }

  /// Those that end so, in the file system's order. A folder may have a hundred thousand: the others cost no string.
  func names(ending: StaticString) throws(RecordingError) -> [String] {
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
  func streams() throws(RecordingError) -> [StreamName] {
    try names().compactMap { StreamName($0) }
  }

  /// A descriptor of a regular file; nil when there is none of that name. `flags` besides those that keep it from
  /// leading elsewhere or from waiting (a named pipe).
  func openFile(_ name: String, _ flags: CInt) -> (descriptor: CInt, status: stat)? {
    let opened = openat(descriptor, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard opened >= 0 else { return nil }
    var status = stat()
    guard fstat(opened, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(opened)
      return nil
    }
    return (opened, status)
  }

  /// What the inode of a regular file tells; nil when there is none of that name.
  func status(of name: String) -> stat? {
    var status = stat()
    guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT == S_IFREG else {
      return nil
    }
    return status
  }

  func contains(_ name: String) -> Bool {
    faccessat(descriptor, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0
  }

  func remove(_ name: String) {
    unlinkat(descriptor, name, 0)
  }

  /// Gives a file another name and makes that durable.
  func rename(_ name: String, to other: String) throws(RecordingError) {
    guard renameat(descriptor, name, descriptor, other) == 0 else {
      throw .system("rename to \(other) the file", "\(path)/\(name)", errno: errno)
    }
    try makeDurable()
  }

  /// Of its file system.
  var space: File.Space? { File(descriptor).space }

  /// Bytes that an unprivileged user may still write to this file system.
  var freeBytes: Int64? { space?.free }
}
