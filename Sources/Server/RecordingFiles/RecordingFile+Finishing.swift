package import FMP4
internal import Glibc
internal import NIOCore
internal import RecordingFormat

extension RecordingFile {
  /// What may be done to make a movie of the fragments.
  package enum Effort: Sendable {
    /// A copy of the media is allowed. It may take as long as writing the media took.
    case whatItTakes
    /// Only what takes milliseconds.
    case inPlace
    /// Like `inPlace`, but accepts a reservation that stays mostly unused: during shutdown there is no time for a copy.
    case atOnce
  }

  package enum Outcome: Sendable, Hashable {
    /// The moov was written into the reservation before the media.
    case filled
    /// The moov was inserted before the media, which stayed in place.
    case inserted
    /// The media's blocks became part of another file after the moov, without being read (XFS, btrfs).
    case shared
    /// The media was copied after the moov.
    case copied
    /// The file stays as it is, whole and fragmented.
    case leftFragmented
  }

  /// Makes an ordinary movie of the file and gives it its final name, durably. A crash at any point leaves either the fragmented
  /// file or the movie, which `RecordingSalvage` tells apart. The moov goes into the reservation if the file has one. Otherwise
  /// the methods are tried in turn: insert a range for the moov, share the media's blocks, copy. A copy calls `onProgress` with
  /// the bytes done and leaves `keepFree` bytes of the disk free.
  package func finish(
    _ builder: MovieBuilder, effort: Effort, keepFree: Int64 = 0, onProgress: (UInt64) -> Void = { _ in }
  ) throws(RecordingError) -> Outcome {
    try requireFragments()
    try sync()
    releaseReserve()
    let filling = room?.movieHeader(builder, contentLength: length)
    var effort = effort
    if effort == .atOnce, let room, let filling, room.isMostOfTheFile(for: filling, contentLength: length) {
      effort = .whatItTakes
    }
    if let room, let filling, effort == .atOnce || !room.isTooLoose(for: filling, contentLength: length) {
      return try fill(room, with: filling)
    }
    let movieHeader = builder.movieHeader(contentLength: length, blockSize: MoovInsertion.blockSize(descriptor))
    if room == nil, try insert(movieHeader) {
      beforeFinalName(length + UInt64(movieHeader.readableBytes))
      try folder.rename(name.unfinished, to: name.finished)
      noteFinished(length + UInt64(movieHeader.readableBytes))
      return .inserted
    }
    let copy = MovieCopy(
      source: descriptor, content: contentStart..<contentStart + length, folder: folder, temporary: name.temporary,
      keepFree: keepFree, calls: calls)
    let outcome: Outcome
    do throws(RecordingError) {
      outcome = try copy.make(movieHeader, effort: effort, progress: onProgress)
    } catch {
      guard error.code == ENOSPC, let room, let filling else { throw error }
      return try fill(room, with: filling)
    }
    if outcome != .leftFragmented {
      noteHead()
      beforeFinalName(length + UInt64(movieHeader.readableBytes))
      try folder.rename(name.temporary, to: name.finished)
      folder.remove(name.unfinished)
      noteFinished(length + UInt64(movieHeader.readableBytes))
    }
    return outcome
  }

  /// Removes the file.
  package func discard() {
    folder.remove(name.unfinished)
  }

  private var insertion: MoovInsertion {
    MoovInsertion(descriptor: descriptor, path: path, origin: origin, calls: calls)
  }

  /// False if the file system cannot insert a range.
  private func insert(_ movieHeader: ByteBuffer) throws(RecordingError) -> Bool {
    guard length > 0 else { return false }
    do throws(MoovInsertion.Failure) {
      guard try insertion.insert(movieHeader) == .inserted else { return false }
    } catch {
      if error.remains != .nothing { noteHead() }
      throw error.error
    }
    noteHead()
    return true
  }

  private func fill(_ room: MoovReservation, with movieHeader: MovieBuilder.SplitHeader) throws(RecordingError)
    -> Outcome
  {
    guard length > 0 else { return .leftFragmented }
    do throws(MoovInsertion.Failure) {
      try room.fill(with: movieHeader, of: descriptor, path: path, calls: calls)
    } catch {
      if error.remains != .nothing { noteHead() }
      throw error.error
    }
    noteHead()
    beforeFinalName(length + contentStart)
    try folder.rename(name.unfinished, to: name.finished)
    noteFinished(length + contentStart)
    return .filled
  }

  /// Removes what a crash or a disk failure left of a moov that was being inserted.
  func takeBackUnfinishedHead() throws(RecordingError) {
    try requireFragments()
    guard room == nil else { return }
    let inserted = try insertion.takeBack(length: length)
    if inserted > 0 { try truncate(to: length - inserted) }
  }

  /// Makes the moov of a file that proved to be a movie durable.
  func confirmHead() throws(RecordingError) {
    try insertion.confirm()
  }

  /// Closes the hole that a power failure left while a moov was being inserted or removed. False if there is none. A reservation
  /// is a hole as well and stays.
  func closeHole() throws(RecordingError) -> Bool {
    guard room == nil else { return false }
    let hole = try insertion.closeHole(length: length)
    if hole > 0 { try truncate(to: length - hole) }
    return hole > 0
  }
}
