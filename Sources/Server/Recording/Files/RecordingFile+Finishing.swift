internal import FMP4
internal import Glibc
internal import NIOCore

extension RecordingFile {
  /// What may be done to make a movie of the fragments.
  enum Effort: Sendable {
    /// Also copy the media, which may take as long as it took the disk to write it.
    case whatItTakes
    /// Only what takes milliseconds.
    case inPlace
    /// The same, though much of the room that was kept in front should be left over: the server goes down, and nobody is
    /// there to make a copy that takes a while.
    case atOnce
  }

  enum Outcome: Sendable, Hashable {
    /// The head was written into the room that was kept before the media.
    case filled
    /// The head was inserted before the media, which stayed where it was.
    case inserted
    /// The media's blocks became part of another file, behind the head, without being read (XFS, btrfs).
    case shared
    /// The media was copied behind the head.
    case copied
    /// The file stays as it is, whole and fragmented.
    case leftFragmented
  }

  /// Makes an ordinary movie of the file and gives it its final name, durably. A crash at any point leaves either the
  /// fragmented file or the movie; `RecordingSalvage` tells which. Where room was kept in front the head goes there; else
  /// what the file system can is found out by asking it: first to insert room for the head, then to share the media's
  /// blocks, then to copy, of which `onProgress` is told in bytes, if `keepFree` bytes of the disk stay free.
  func finish(
    _ builder: MovieBuilder, effort: Effort, keepFree: Int64 = 0, onProgress: (UInt64) -> Void = { _ in }
  ) throws(RecordingError) -> Outcome {
    try requireFragments()
    try sync()
    releaseReserve()
    let filling = room?.head(builder, contentLength: length)
    var effort = effort
    if effort == .atOnce, let room, let filling, room.isMostOfTheFile(for: filling, contentLength: length) {
      effort = .whatItTakes
    }
    if let room, let filling, effort == .atOnce || !room.isTooLoose(for: filling, contentLength: length) {
      return try fill(room, with: filling)
    }
    let head = builder.head(contentLength: length, blockSize: MoovInsertion.blockSize(descriptor))
    if room == nil, try insert(head) {
      try folder.rename(name.unfinished, to: name.finished)
      noteFinished(length + UInt64(head.readableBytes))
      return .inserted
    }
    let copy = MovieCopy(
      source: descriptor, content: contentStart..<contentStart + length, folder: folder, temporary: name.temporary,
      keepFree: keepFree)
    let outcome: Outcome
    do throws(RecordingError) {
      outcome = try copy.make(head, effort: effort, progress: onProgress)
    } catch {
      guard error.code == ENOSPC, let room, let filling else { throw error }
      return try fill(room, with: filling)
    }
    if outcome != .leftFragmented {
      noteHead()
      try folder.rename(name.temporary, to: name.finished)
      folder.remove(name.unfinished)
      noteFinished(length + UInt64(head.readableBytes))
    }
    return outcome
  }

  /// The file's contents are of no use.
  func discard() {
    folder.remove(name.unfinished)
  }

  private var insertion: MoovInsertion {
    MoovInsertion(descriptor: descriptor, path: path, origin: origin, calls: calls)
  }

  /// False when the file system cannot insert room.
  private func insert(_ head: ByteBuffer) throws(RecordingError) -> Bool {
    guard length > 0 else { return false }
    do throws(MoovInsertion.Failure) {
      guard try insertion.insert(head) == .inserted else { return false }
    } catch {
      if error.remains != .nothing { noteHead() }
      throw error.error
    }
    noteHead()
    return true
  }

  private func fill(_ room: MoovReservation, with head: MovieBuilder.ParcelledHead) throws(RecordingError) -> Outcome {
    guard length > 0 else { return .leftFragmented }
    do throws(MoovInsertion.Failure) {
      try room.fill(with: head, of: descriptor, path: path, calls: calls)
    } catch {
      if error.remains != .nothing { noteHead() }
      throw error.error
    }
    noteHead()
    try folder.rename(name.unfinished, to: name.finished)
    noteFinished(length + contentStart)
    return .filled
  }

  /// Removes what a crash, or a disk that failed, left of a head that was being inserted.
  func takeBackUnfinishedHead() throws(RecordingError) {
    try requireFragments()
    guard room == nil else { return }
    let inserted = try insertion.takeBack(length: length)
    if inserted > 0 { try truncate(to: length - inserted) }
  }

  /// Makes the head durable of what turned out to be a movie.
  func confirmHead() throws(RecordingError) {
    try insertion.confirm()
  }

  /// Closes the hole that a power failure left while a head was being inserted or taken back. False where there is none.
  /// Room that was kept in front is a hole, too, and stays.
  func closeHole() throws(RecordingError) -> Bool {
    guard room == nil else { return false }
    let hole = try insertion.closeHole(length: length)
    if hole > 0 { try truncate(to: length - hole) }
    return hole > 0
  }
}
