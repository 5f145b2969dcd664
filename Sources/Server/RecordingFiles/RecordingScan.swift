internal import Base
internal import FMP4
internal import Glibc
internal import NIOCore
internal import RecordingFormat

/// The contents of a fragmented file, read in one pass. Each header is read once. Media is read only to compare it with its
/// checksum. Waits for the disk.
struct RecordingScan {
  let content: RecordingScanner.Content
  /// The notes in the file with their offsets, including notes of parts that are not whole.
  let notes: [(offset: UInt64, content: ByteBuffer)]
  /// Index of the part that is whole.
  let index: RecordingIndex
  let compared: RecordingScanner.ComparedCounts

  /// Whether fragments are compared with the seals before them.
  enum Seals: Sendable {
    /// Seals are skipped, as players do.
    case ignored
    case heeded(RecordingScanner.Comparison)
  }

  /// Scans the file from byte `start` on; `size` is its total size. `progress` receives the bytes done.
  init(
    _ descriptor: CInt, path: String, from start: UInt64 = 0, size: UInt64, seals: Seals, progress: (UInt64) -> Void
  ) throws(RecordingError) {
    // Headers lie far apart: without this hint the system would read ahead between them.
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

  /// Makes later reads from that offset come from the disk. The system keeps bytes that it could not write in memory, as if they
  /// were written. It reports the error only once, perhaps to a process that has ended. Bytes not yet written are written first.
  private static func forgetMemory(of descriptor: CInt, from offset: UInt64, path: String) throws(RecordingError) {
    guard fdatasync(descriptor) == 0 else { throw .system("make durable", path, errno: errno) }
    posix_fadvise(descriptor, off_t(clamping: offset - offset % UInt64(BoxWalk.page)), 0, POSIX_FADV_DONTNEED)
  }
}
