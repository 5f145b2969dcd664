internal import FMP4
internal import Glibc
internal import RecordingFormat
internal import Storage

/// Whether a file reserves room at its start for the moov, and how much.
extension MoovReservation {
  /// The reservation for a new, empty file. Nil if the file system has another way, if the reservation would occupy its full size
  /// on the disk, or if the file may not become that long. The file is empty afterwards.
  static func choose(_ length: Int, for descriptor: CInt, calls: DiskCalls) -> MoovReservation? {
    guard length >= unit, !canInsert(descriptor, calls), !File(descriptor).canShare,
      hasHoles(descriptor, length)
    else { return nil }
    return MoovReservation(length: length / unit * unit)
  }

  /// An empty file has no place to insert at. A file system that supports insertion therefore returns `EINVAL` and does nothing.
  private static func canInsert(_ descriptor: CInt, _ calls: DiskCalls) -> Bool {
    let code = calls.allocate(descriptor, FALLOC_FL_INSERT_RANGE, 0, unit)
    return code != EOPNOTSUPP && code != ENOSYS
  }

  /// Whether unwritten ranges occupy no space. On FAT they do: they must be written as zeros before any media can be.
  private static func hasHoles(_ descriptor: CInt, _ length: Int) -> Bool {
    defer { ftruncate(descriptor, 0) }
    var status = stat()
    guard ftruncate(descriptor, off_t(unit)) == 0, fstat(descriptor, &status) == 0,
      Int(status.st_blocks) * 512 < unit
    else { return false }
    // A limit of file sizes fails here rather than at the first fragment.
    return ftruncate(descriptor, off_t(length)) == 0
  }

  /// Whether more than a sixteenth of the recording would remain unused in the reservation. A copy avoids that, and takes seconds
  /// for a recording of less than half a gigabyte.
  func isTooLoose(for movieHeader: MovieBuilder.SplitHeader, contentLength: UInt64) -> Bool {
    UInt64(max(0, length - movieHeader.byteCount)) > contentLength / 16
  }

  /// Whether the unused rest would be larger than the media. Such a recording is copied in a moment, even during shutdown.
  func isMostOfTheFile(for movieHeader: MovieBuilder.SplitHeader, contentLength: UInt64) -> Bool {
    let left = length - movieHeader.byteCount
    return left > Self.worthACopy && UInt64(left) > contentLength
  }

  /// Unused bytes that are accepted in any case.
  private static let worthACopy = 1 << 20
}
