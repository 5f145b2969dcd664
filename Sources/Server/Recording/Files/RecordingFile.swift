internal import Basics
internal import FMP4
internal import Glibc
internal import NIOCore
internal import Storage

/// The file of a recording on its way from fragments to a movie. Every call may wait for the disk, so it is used on
/// one thread of a pool at a time, never on an event loop.
final class RecordingFile {
  let folder: RecordingFolder
  let name: RecordingName
  /// Bytes that are whole, from the first that was recorded on, as all offsets here count: what a failed write left
  /// behind them is cut off.
  private(set) var length: UInt64
  /// Bytes that a power failure cannot take any more, name and folder included.
  private(set) var durableLength: UInt64 = 0
  let descriptor: CInt
  /// What is kept in front of the first byte for the movie's head; nil where that finds another way.
  let room: MoovReservation?
  /// Where its first byte lies, for those who read it while it becomes a movie.
  let origin: FileOrigin
  private var unsynced = Unsynced.nothing
  private var trust = Trust.whole
  private var isNameDurable = false
  private var trail = PageCacheTrimmer()
  let calls: DiskCalls
  /// Of a file that this process began to write.
  private var holder: UnfinishedRecordingFiles.Holder?
  /// Up to where the disk keeps room for this file.
  private var reservedLength: UInt64 = 0
  /// How far it is on its way to a movie.
  private(set) var stage = Stage.fragments

  enum Stage: Sendable {
    case fragments
    /// A head has been put in front, or is being put there, so that `length` tells no more where the media ends: nothing
    /// is appended and nothing cut off any more. What is left to do is left to whoever opens the file next.
    case movie
  }

  /// A head lies before the fragments, perhaps not all of it.
  func noteHead() { stage = .movie }

  /// Throws where offsets are not those of the fragments any more.
  func requireFragments() throws(RecordingError) {
    guard case .movie = stage else { return }
    throw RecordingError("\(LogText.escaped(path)) has its head, but is not known to be durable", code: EIO)
  }

  private enum Unsynced {
    case nothing
    case something
  }

  /// Whether what was written and read back is what the disk will have.
  private enum Trust {
    case whole
    /// The disk failed to take something that lies behind `durableLength`, and will not say so again.
    case durablePart
  }

  /// For messages.
  var path: String { "\(folder.path)/\(name.unfinished)" }
  var finishedPath: String { "\(folder.path)/\(name.finished)" }

  /// Where its first byte lies in the file, as long as it is no movie.
  var contentStart: UInt64 { UInt64(room?.length ?? 0) }

  /// `size` is the file's.
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

  /// A new file of that name, with the first number that nobody has. It keeps `moovReservation` bytes for the movie's head
  /// where the file system has no other way to put one in front without a copy.
  static func create(
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
      // What an earlier run left of that name has been finished meanwhile: two would become the same.
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

  /// What became of an attempt to take up a file that an earlier run left.
  enum Reopening {
    case opened(RecordingFile)
    /// Somebody holds its lock: another process writes it, or a child of one has not yet let go of what it inherited.
    case locked
    case gone
    case unreadable(RecordingError)
  }

  static func reopen(in folder: RecordingFolder, name: RecordingName, calls: DiskCalls = .system) -> Reopening {
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
    // Whoever wrote it had room kept behind its end, which nobody else would give back.
    file.reservedLength = .max
    return .opened(file)
  }

  /// The file for readers, who may keep it for as long as they like: it shares neither the lock nor the right to write.
  /// `closed` is called when the last of them is gone.
  func shared(closed: (@Sendable () -> Void)? = nil) -> SharedFile? {
    let copy = open("/proc/self/fd/\(descriptor)", O_RDONLY | O_CLOEXEC)
    return copy < 0 ? nil : SharedFile(taking: copy, kind: .disk, origin: origin, closed: closed)
  }

  // MARK: Appending

  /// Writes what stands before the first fragment. Behind room for a head the `moov` comes alone: the `ftyp` stands before
  /// that room.
  func begin(_ initSegment: ByteBuffer) throws(RecordingError) {
    guard let room else { return try append(initSegment) }
    guard let (fileType, movie) = MoovReservation.parts(of: initSegment) else {
      throw RecordingError("\(LogText.escaped(path)) would begin without its ftyp")
    }
    for piece in room.beginning(fileType) {
      try Self.write(piece.bytes, to: descriptor, at: UInt64(piece.offset), path: path, calls: calls)
    }
    try append(movie)
  }

  /// Appends a fragment from the memory it lies in, without a copy through this process, behind `prefix`. Returns
  /// where the fragment begins.
  @discardableResult
  func append(_ range: FileRange, behind prefix: ByteBuffer = ByteBuffer()) throws(RecordingError) -> UInt64 {
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
  func append(_ bytes: ByteBuffer) throws(RecordingError) {
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

  /// What stands behind `length` goes, and the room that is kept there.
  private func cutOff() {
    ftruncate(descriptor, off_t(clamping: contentStart + length))
    reservedLength = 0
  }

  // MARK: Durability

  var hasUnsynced: Bool { unsynced == .something }

  /// Makes what was written durable, and with the first time the file's name. After a failure the system may take what
  /// it could not write for written: it is not asked again.
  func sync() throws(RecordingError) {
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
    // Nothing is inserted behind room that is kept.
    if room == nil, let old = trail.advance(durable: durableLength) {
      posix_fadvise(
        descriptor, off_t(clamping: old.lowerBound), off_t(clamping: old.upperBound - old.lowerBound),
        POSIX_FADV_DONTNEED)
    }
  }

  enum Cut: Sendable {
    case unneeded
    case cut
  }

  /// No sync has failed: all that was written is what the disk has, or will have.
  var keepsAll: Bool { trust == .whole }

  /// Gives up what a failed `sync` may have lost: the file ends where the last one left it. Throws where there was none:
  /// the file is then left for the next start to judge.
  func cutToDurable() throws(RecordingError) -> Cut {
    guard case .durablePart = trust else { return .unneeded }
    guard durableLength > 0 else { throw .system("make durable", path, errno: EIO) }
    try truncate(to: durableLength)
    trust = .whole
    return .cut
  }

  /// A file that was removed can be written to as before, for nobody.
  private func checkThatItIsThere() throws(RecordingError) {
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_nlink == 0 else { return }
    throw RecordingError("\(LogText.escaped(path)) was removed while it was being recorded", code: ENOENT)
  }

  /// Cuts the file off behind `length` bytes: what follows is not whole.
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

  /// It has become a movie of so many bytes.
  func noteFinished(_ length: UInt64) {
    self.length = length
    durableLength = length
  }

  // MARK: Room

  /// Has the disk keep room for `media` more bytes and for a head of `head` bytes, so that what was recorded can be
  /// finished when the disk is full. Throws when there is none. Where the file system cannot keep room, nothing is
  /// kept.
  func reserve(media: Int, head: Int) throws(RecordingError) {
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

  /// Room is taken in steps of so many bytes, which also keeps the file in few pieces.
  private static let reserveStep: UInt64 = 4 << 20

  /// Gives the room behind the file's end back to the disk, for the head to take.
  func releaseReserve() {
    guard case .fragments = stage, reservedLength > length else { return }
    cutOff()
  }
}
