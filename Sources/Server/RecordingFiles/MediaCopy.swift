internal import Base
internal import Glibc
internal import NIOCore
internal import Storage

/// Copies bytes from one file to another within the kernel.
package struct MediaCopy {
  let source: CInt
  let target: CInt
  /// Path of the target, for messages.
  let path: String

  package init(source: CInt, target: CInt, path: String) {
    (self.source, self.target, self.path) = (source, target, path)
  }

  /// Bytes between two calls of `step`.
  private static let step: off_t = 32 << 20

  /// Copies a range to the target from `start` on. copy_file_range shares or copies within the kernel; where it cannot, sendfile
  /// copies. `step` receives the bytes done and ends the copy by throwing.
  package func copy(
    _ range: Range<UInt64>, to start: Int, step: (UInt64) throws(RecordingError) -> Void
  ) throws(RecordingError) {
    var offset = off_t(clamping: range.lowerBound)
    var position = off_t(start)
    let end = off_t(clamping: range.upperBound)
    while offset < end {
      let count = Int(min(end - offset, Self.step))
      var copied = copy_file_range(source, &offset, target, &position, count, 0)
      if copied < 0, [EXDEV, EOPNOTSUPP, EINVAL, ENOSYS].contains(errno) {
        guard lseek(target, position, SEEK_SET) >= 0 else { throw .system("seek in", path, errno: errno) }
        copied = sendfile(target, source, &offset, count)
        if copied > 0 { position += off_t(copied) }
      }
      if copied < 0, errno == EINTR { continue }
      guard copied > 0 else { throw .system("copy into", path, errno: copied == 0 ? EIO : errno) }
      try step(UInt64(clamping: offset) - range.lowerBound)
    }
  }
}

/// Writes a movie as a separate file: moov first, then the media of the fragmented file. Waits for the disk.
struct MovieCopy {
  /// The fragmented file, and the range of its bytes to take: up to its end.
  let source: CInt
  let content: Range<UInt64>
  /// Folder of the copy, and its name until it is whole. An existing file of that name is the rest of a crash and is removed.
  let folder: RecordingFolder
  let temporary: String
  /// Permission bits of the copy; nil for the usual ones.
  var permissions: mode_t?
  /// Bytes that stay free on the disk.
  var keepFree: Int64 = 0
  var calls = DiskCalls.system

  /// Makes the copy durable under its temporary name. `progress` receives the bytes done. After `.leftFragmented` and after an
  /// error there is no copy.
  func make(
    _ movieHeader: ByteBuffer, effort: RecordingFile.Effort, progress: (UInt64) -> Void
  ) throws(RecordingError) -> RecordingFile.Outcome {
    let path = "\(folder.path)/\(temporary)"
    folder.remove(temporary)
    let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
    let target = openat(folder.descriptor, temporary, flags, 0o644)
    guard target >= 0 else { throw .system("make", path, errno: errno) }
    defer { close(target) }
    if let permissions { fchmod(target, permissions) }
    do throws(RecordingError) {
      let media = MediaCopy(source: source, target: target, path: path)
      var outcome = RecordingFile.Outcome.shared
      if !File(target).share(source, from: content.lowerBound, at: movieHeader.readableBytes) {
        guard effort == .whatItTakes else {
          folder.remove(temporary)
          return .leftFragmented
        }
        // Half a copy is useless and takes space from the recordings in progress.
        let whole = UInt64(content.count) + UInt64(movieHeader.readableBytes)
        try requireRoom(whole)
        try media.copy(content, to: movieHeader.readableBytes) { done throws(RecordingError) in
          progress(done)
          try requireRoom(whole - done)
        }
        outcome = .copied
      }
      try RecordingFile.write(movieHeader, to: target, at: 0, path: path)
      guard fdatasync(target) == 0 else { throw .system("make durable", path, errno: errno) }
      return outcome
    } catch {
      folder.remove(temporary)
      throw error
    }
  }

  /// Throws if the disk has no room for that many more bytes.
  private func requireRoom(_ bytes: UInt64) throws(RecordingError) {
    guard let free = calls.freeBytes(folder) else { return }
    let usable = max(0, free.subtractingReportingOverflow(keepFree).partialValue)
    guard UInt64(usable) < bytes else { return }
    let limit = keepFree > 0 ? " above --keep-free (\(keepFree / 1_000_000) MB)" : ""
    throw RecordingError(
      "finishing the recording needs a copy of \(bytes / 1_000_000) MB more, and the disk of "
        + "\(LogText.escaped(folder.path)) has \(usable / 1_000_000) MB free\(limit); free space", code: ENOSPC)
  }
}
