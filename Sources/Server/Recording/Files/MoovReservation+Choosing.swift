internal import FMP4
internal import Glibc
internal import Storage

/// Whether a file is to keep room in front, and how much.
extension MoovReservation {
  /// Of a new, empty file: nil where the file system has another way, where the room would cost as much as it is long, or
  /// where the file may not become so long. The file is empty afterwards.
  static func choose(_ length: Int, for descriptor: CInt, calls: DiskCalls) -> MoovReservation? {
    guard length >= unit, !canInsert(descriptor, calls), !File(descriptor).canShare,
      hasHoles(descriptor, length)
    else { return nil }
    return MoovReservation(length: length / unit * unit)
  }

  /// An empty file has no place to insert at, so that a file system which can says `EINVAL`, and does nothing.
  private static func canInsert(_ descriptor: CInt, _ calls: DiskCalls) -> Bool {
    let code = calls.allocate(descriptor, FALLOC_FL_INSERT_RANGE, 0, unit)
    return code != EOPNOTSUPP && code != ENOSYS
  }

  /// Whether what is not written takes no room: on FAT it does, and must be written as zeros before a picture can be.
  private static func hasHoles(_ descriptor: CInt, _ length: Int) -> Bool {
    defer { ftruncate(descriptor, 0) }
    var status = stat()
    guard ftruncate(descriptor, off_t(unit)) == 0, fstat(descriptor, &status) == 0,
      Int(status.st_blocks) * 512 < unit
    else { return false }
    // A limit of file sizes is met here, and not by the first picture.
    return ftruncate(descriptor, off_t(length)) == 0
  }

  /// Whether more of it than a sixteenth of the recording would be left over: a copy, which of a recording of less than
  /// half a gigabyte takes seconds, makes a file without that.
  func isTooLoose(for head: MovieBuilder.ParcelledHead, contentLength: UInt64) -> Bool {
    UInt64(max(0, length - head.byteCount)) > contentLength / 16
  }

  /// Whether what would be left over is more than what was recorded: that is copied in a moment, also when the server goes
  /// down.
  func isMostOfTheFile(for head: MovieBuilder.ParcelledHead, contentLength: UInt64) -> Bool {
    let left = length - head.byteCount
    return left > Self.worthACopy && UInt64(left) > contentLength
  }

  /// Bytes that may be left over in any case.
  private static let worthACopy = 1 << 20
}
