internal import Base
internal import Glibc
package import NIOCore
internal import RecordingFormat
package import Storage

/// The file of a recording, from its first fragment to the finished movie. Every call may wait for the disk. It is used on one
/// pool thread at a time, never on an event loop.
package final class RecordingFile {
  package let folder: RecordingFolder
  package let name: RecordingName
  /// Bytes that are whole, counted from the first recorded byte, as all offsets here are. What a failed write left after them is
  /// cut off.
  package private(set) var length: UInt64
  /// Bytes that are safe from a power failure, with the name and the folder.
  package private(set) var durableLength: UInt64 = 0
  let descriptor: CInt
  /// Reservation for the moov before the first recorded byte; nil where the moov is placed in another way.
  let room: MoovReservation?
  /// Position of the first recorded byte, for readers while the file becomes a movie.
  let origin: FileOrigin
  private var unsynced = Unsynced.nothing
  private var trust = Trust.whole
  private var isNameDurable = false
  private var cacheTrimmer = PageCacheTrimmer()
  let calls: DiskCalls
  /// Set for a file that this process created.
  private var holder: UnfinishedRecordingFiles.Holder?
  /// Called before it gets its final name, with the bytes that it then has.
  package var beforeFinalName: (UInt64) -> Void = { _ in }
  /// End of the range that the disk keeps allocated for this file.
  private var reservedLength: UInt64 = 0
  /// Whether the file is still fragmented.
  package private(set) var stage = Stage.fragments

  package enum Stage: Sendable {
    case fragments
    /// A moov is at the start or is being put there, so `length` no longer shows where the media ends. Nothing is appended or cut
    /// off. Remaining work is done when the file is next opened.
    case movie
  }

  /// A moov, perhaps incomplete, lies before the fragments.
  func noteHead() { stage = .movie }

  /// Throws if offsets are no longer those of the fragments.
  package func requireFragments() throws(RecordingError) {
    guard case .movie = stage else { return }
    throw RecordingError("\(LogText.escaped(path)) has its moov, but is not known to be durable", code: EIO)
  }

  private enum Unsynced {
    case nothing
    case something
  }

  /// Whether the disk will have what was written and read back.
  private enum Trust {
    case whole
    /// A sync of bytes after `durableLength` failed. A second sync would not report it again.
    case durablePart
  }

  /// For messages.
  package var path: String { "\(folder.path)/\(name.unfinished)" }
  package var finishedPath: String { "\(folder.path)/\(name.finished)" }

  /// Position of the first recorded byte in the file while it is no movie.
  package var contentStart: UInt64 { UInt64(room?.length ?? 0) }

  /// `size` is that of the file.
  private init(
    folder: RecordingFolder, name: RecordingName, taking descriptor: CInt, size: UInt64, room: MoovReservation?,
    calls: DiskCalls
  ) {
    self.folder = folder
    self.name = name
    self.descriptor = descriptor
    self.room = room
    self.calls = calls
    let start = room?.length ?? 0
    length = size - min(size, UInt64(start))
    origin = FileOrigin(shift: start)
  }

  deinit {
    close(descriptor)
  }

  /// A new file of that name, with the first free number. It reserves `moovReservation` bytes for the moov where the file system
  /// has no other way to place one without a copy.
  package static func create(
    in folder: RecordingFolder, name: RecordingName, moovReservation: Int = 0, calls: DiskCalls = .system
  ) throws(RecordingError) -> RecordingFile {
    for number in 1...RecordingName.maximumNumber {
      let name = name.numbered(number)
      if folder.isTaken(name) { continue }
      let holder = UnfinishedRecordingFiles.take(name.unfinished, in: folder)
      let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
      let descriptor = openat(folder.descriptor, name.unfinished, flags, 0o644)
      if descriptor < 0, errno == EEXIST { continue }
      guard descriptor >= 0 else { throw .system("make", "\(folder.path)/\(name.unfinished)", errno: errno) }
      flock(descriptor, LOCK_EX | LOCK_NB)
      // A file of that name from an earlier run was finished meanwhile: both would get the same name.
      if folder.isTaken(name) {
        folder.remove(name.unfinished)
        close(descriptor)
        continue
      }
      let room = MoovReservation.choose(moovReservation, for: descriptor, calls: calls)
      let file = RecordingFile(folder: folder, name: name, taking: descriptor, size: 0, room: room, calls: calls)
      file.holder = holder
      return file
    }
    throw RecordingError("no free name for a recording like \(name.base) in \(LogText.escaped(folder.path))")
  }

  /// Result of an attempt to open a file that an earlier run left.
  package enum Reopening {
    case opened(RecordingFile)
    /// Another process writes it, or a child process has not yet released an inherited descriptor.
    case locked
    case gone
    case unreadable(RecordingError)
  }

  package static func reopen(in folder: RecordingFolder, name: RecordingName, calls: DiskCalls = .system) -> Reopening {
    guard let (descriptor, status) = folder.openFile(name.unfinished, O_RDWR) else {
      let code = errno
      let isGone = !folder.contains(name.unfinished) && errno == ENOENT
      return isGone ? .gone : .unreadable(.system("open", "\(folder.path)/\(name.unfinished)", errno: code))
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      close(descriptor)
      return .locked
    }
    let size = UInt64(clamping: status.st_size)
    let path = "\(folder.path)/\(name.unfinished)"
    let room: MoovReservation?
    do throws(RecordingError) {
      room = try MoovReservation.find(in: descriptor, size: size, path: path)
    } catch {
      close(descriptor)
      return .unreadable(error)
    }
    let file = RecordingFile(folder: folder, name: name, taking: descriptor, size: size, room: room, calls: calls)
    file.unsynced = .something
    // Its writer had space allocated after the end of the file. It must be released here.
    file.reservedLength = .max
    return .opened(file)
  }

  /// The file for readers, for as long as they need it. It shares neither the lock nor the right to write. `closed` is called
  /// after the last reader has gone.
  package func shared(closed: (@Sendable () -> Void)? = nil) -> SharedFile? {
    let copy = open("/proc/self/fd/\(descriptor)", O_RDONLY | O_CLOEXEC)
    return copy < 0 ? nil : SharedFile(taking: copy, kind: .disk, origin: origin, closed: closed)
  }

  // MARK: Appending

  /// Writes what precedes the first fragment. After a reservation that is the `moov` alone, because the `ftyp` stands before the
  /// reservation.
  package func begin(_ initSegment: ByteBuffer) throws(RecordingError) {
    guard let room else { return try append(initSegment) }
    guard let (fileType, movie) = MoovReservation.parts(of: initSegment) else {
      throw RecordingError("\(LogText.escaped(path)) would begin without its ftyp")
    }
    for piece in room.beginning(fileType) {
      try Self.write(piece.bytes, to: descriptor, at: UInt64(piece.offset), path: path, calls: calls)
    }
    try append(movie)
  }

  /// Appends a fragment after `prefix`, without a copy through this process. Returns where the fragment begins.
  @discardableResult
  package func append(_ range: FileRange, behind prefix: ByteBuffer = ByteBuffer()) throws(RecordingError) -> UInt64 {
    try requireFragments()
    let start = length + UInt64(prefix.readableBytes)
    unsynced = .something
    do throws(RecordingError) {
      try Self.write(prefix, to: descriptor, at: contentStart + length, path: path, calls: calls)
      try send(range, to: contentStart + start)
    } catch {
      cutOff()
      throw error
    }
    length = start + UInt64(range.length)
    return start
  }

  /// `start` is an offset of the file itself.
  private func send(_ range: FileRange, to start: UInt64) throws(RecordingError) {
    do throws(StorageError) {
      try File(descriptor).write(range, at: Int(clamping: start))
    } catch {
      throw .system("write", path, errno: error.errno)
    }
  }

  /// Appends boxes that are in memory.
  package func append(_ bytes: ByteBuffer) throws(RecordingError) {
    try requireFragments()
    unsynced = .something
    do throws(RecordingError) {
      try Self.write(bytes, to: descriptor, at: contentStart + length, path: path, calls: calls)
    } catch {
      cutOff()
      throw error
    }
    length += UInt64(bytes.readableBytes)
  }

  /// Removes what lies after `length`, and the space allocated there.
  private func cutOff() {
    ftruncate(descriptor, off_t(clamping: contentStart + length))
    reservedLength = 0
  }

  // MARK: Durability

  package var hasUnsynced: Bool { unsynced == .something }

  /// Makes written bytes durable; the first call also makes the file's name durable. After a failure the system may treat lost
  /// bytes as written, so the call is not repeated.
  package func sync() throws(RecordingError) {
    guard case .whole = trust else { throw .system("make durable", path, errno: EIO) }
    try checkThatItIsThere()
    guard hasUnsynced || !isNameDurable else { return }
    let code = calls.sync(descriptor)
    guard code == 0 else {
      trust = .durablePart
      throw .system("make durable", path, errno: code)
    }
    if !isNameDurable {
      do throws(RecordingError) {
        try folder.makeDurable()
      } catch {
        trust = .durablePart
        throw error
      }
      isNameDurable = true
    }
    unsynced = .nothing
    durableLength = length
    // No range is inserted into a file that has a reservation, so its cached pages may stay.
    if room == nil, let old = cacheTrimmer.advance(durable: durableLength) {
      posix_fadvise(
        descriptor, off_t(clamping: old.lowerBound), off_t(clamping: old.upperBound - old.lowerBound),
        POSIX_FADV_DONTNEED)
    }
  }

  package enum Cut: Sendable {
    case unneeded
    case cut
  }

  /// No sync has failed: the disk has everything written, or will have it.
  package var keepsAll: Bool { trust == .whole }

  /// Cuts off what a failed `sync` may have lost: the file ends where the last successful one left it. Throws if there was none;
  /// the next start then examines the file.
  package func cutToDurable() throws(RecordingError) -> Cut {
    guard case .durablePart = trust else { return .unneeded }
    guard durableLength > 0 else { throw .system("make durable", path, errno: EIO) }
    try truncate(to: durableLength)
    trust = .whole
    return .cut
  }

  /// Throws if the file was removed: writing to it would succeed without effect.
  private func checkThatItIsThere() throws(RecordingError) {
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_nlink == 0 else { return }
    throw RecordingError("\(LogText.escaped(path)) was removed while it was being recorded", code: ENOENT)
  }

  /// Cuts the file off after `length` bytes, since what follows is not whole.
  func truncate(to length: UInt64) throws(RecordingError) {
    try requireFragments()
    guard ftruncate(descriptor, off_t(clamping: contentStart + length)) == 0 else {
      throw .system("truncate", path, errno: errno)
    }
    self.length = length
    durableLength = min(durableLength, length)
    unsynced = .something
    reservedLength = 0
  }

  /// The file has become a movie of that many bytes.
  func noteFinished(_ length: UInt64) {
    self.length = length
    durableLength = length
  }

  // MARK: Allocating space

  /// Allocates space for `media` more bytes and a moov of `head` bytes, so that the recording can be finished on a full disk.
  /// Throws if there is no space. Does nothing where the file system cannot allocate in advance.
  package func reserve(media: Int, head: Int) throws(RecordingError) {
    try requireFragments()
    let needed = length + UInt64(media + head)
    guard needed > reservedLength else { return }
    for room in [needed + Self.reserveStep, needed] {
      let code = calls.allocate(
        descriptor, FALLOC_FL_KEEP_SIZE, Int(clamping: contentStart + length), Int(clamping: room - length))
      if code == 0 {
        reservedLength = room
        return
      }
      guard [ENOSPC, EDQUOT, EFBIG, EIO, EROFS].contains(code) else {
        reservedLength = .max
        return
      }
      if room == needed { throw .system("keep room for", path, errno: code) }
    }
  }

  /// Step of allocation in bytes, which also keeps the file in few extents.
  private static let reserveStep: UInt64 = 4 << 20

  /// Returns the space allocated after the file's end to the disk, for the moov.
  package func releaseReserve() {
    guard case .fragments = stage, reservedLength > length else { return }
    cutOff()
  }
}
