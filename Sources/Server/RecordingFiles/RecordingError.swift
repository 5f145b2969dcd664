internal import Base
internal import Glibc

/// Why a recording cannot go on: what failed, with which file, why, and what to do.
package struct RecordingError: Error, Sendable, Hashable, CustomStringConvertible {
  package var description: String
  /// errno of the system; nil where weir itself refuses.
  package var code: CInt?

  package init(_ description: String, code: CInt? = nil) {
    self.description = description
    self.code = code
  }

  /// A system call failed: `cannot write recordings/cam/….part.mp4: No space left on device; free space on the disk`.
  package static func system(_ action: String, _ path: String, errno code: CInt) -> RecordingError {
    let advice = advice(code).map { "; \($0)" } ?? ""
    return RecordingError(
      "cannot \(action) \(LogText.escaped(path)): \(String(cString: strerror(code)))\(advice)", code: code)
  }

  /// A file given by the user cannot be opened.
  static func unopened(_ path: String, errno code: CInt) -> RecordingError {
    let reason =
      switch code {
      case ENOENT, ENOTDIR: "there is no such file; see what there is: weir record list"
      case EACCES, EPERM: "\(String(cString: strerror(code))); try again as a user who may"
      default: String(cString: strerror(code))
      }
    return RecordingError("cannot open \(LogText.escaped(path)): \(reason)", code: code)
  }

  private static func advice(_ code: CInt) -> String? {
    switch code {
    case ENOSPC: "free space on its disk (df, df -i)"
    case EDQUOT: "free space or raise the quota of weir's user"
    case EFBIG: "raise the limit of file sizes (ulimit -f), or set --record-split"
    case EROFS: "the disk has become read-only: see dmesg, repair it and remount it read-write"
    case EACCES, EPERM: "give weir's user the right to write there"
    case ENOENT: "make the folder again, or mount what belongs there"
    case EIO: "the disk reports an error: see dmesg, and change the disk"
    case ENOTDIR, ELOOP: "put a folder there"
    default: nil
    }
  }
}
