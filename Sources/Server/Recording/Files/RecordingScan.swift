internal import Basics
internal import FMP4
internal import Glibc
internal import NIOCore

/// What is in a file of fragments, by one pass over it: every head is read once, and no media but what is compared with
/// its checksum. Waits for the disk.
struct RecordingScan {
  let content: RecordingScanner.Content
  /// What the file's notes tell, each with where it stands; those of what is not whole, too.
  let notes: [(offset: UInt64, content: ByteBuffer)]
  /// Where the segments lie of what is whole.
  let index: RecordingIndex
  let compared: RecordingScanner.ComparedCounts

  /// Whether fragments are compared with the seals before them.
  enum Seals: Sendable {
    /// They are passed over, as players do.
    case ignored
    case heeded(RecordingScanner.Comparison)
  }

  /// Of the bytes of a file from `start` on, `size` in all; `progress` is given bytes that are done of them.
  init(
    _ descriptor: CInt, path: String, from start: UInt64 = 0, size: UInt64, seals: Seals, progress: (UInt64) -> Void
  ) throws(RecordingError) {
    // Heads lie far apart: what is between them need not be read.
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM)
    defer { posix_fadvise(descriptor, 0, 0, POSIX_FADV_NORMAL) }
    var scanner =
      switch seals {
      case .ignored: RecordingScanner(fileSize: size)
      case .heeded(let comparison): RecordingScanner(fileSize: size, comparing: comparison, crc: Checksum.of)
      }
    var indexer = RecordingIndexer()
    var isFromDisk = false
    while scanner.step != .finished {
      switch scanner.step {
      case .read(let offset, let length):
        progress(offset)
        scanner.receive(
          try RecordingFile.read(from: descriptor, at: start + offset, count: length, path: path))
      case .compare(let offset, let length, let checksum):
        progress(offset)
        if case .heeded(.uncertain) = seals, !isFromDisk {
          try Self.forgetMemory(of: descriptor, from: start + offset, path: path)
          isFromDisk = true
        }
        let found = try RecordingFile.checksum(of: descriptor, at: start + offset, count: length, path: path)
        scanner.compared(found == checksum ? .equal : .different)
      case .finished: break
      }
      for found in scanner.takeFound() { indexer.add(found) }
    }
    (content, notes, compared) = (scanner.content, scanner.notes, scanner.compared)
    index = indexer.finished
  }

  /// From there on the file is read from the disk: the system keeps what it could not write in memory as if it had, tells
  /// of that once, and perhaps nobody who still lives. What it has not yet tried to write is written first.
  private static func forgetMemory(of descriptor: CInt, from offset: UInt64, path: String) throws(RecordingError) {
    guard fdatasync(descriptor) == 0 else { throw .system("make durable", path, errno: errno) }
    posix_fadvise(descriptor, off_t(clamping: offset - offset % UInt64(BoxWalk.page)), 0, POSIX_FADV_DONTNEED)
  }
}
