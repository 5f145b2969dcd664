internal import Glibc
internal import NIOCore
internal import RecordingFormat

/// Reads the metadata of a file. Waits for the disk.
extension RecordingMetadata {
  /// Bytes of one read. The headers of `ftyp`, `moov` and the next box take one read each; the last usually contains the metadata
  /// too.
  private static let windowSize = 512

  /// The metadata of a finished recording of `size` bytes. Nil if the file is not of weir, is older than this metadata, is still
  /// fragmented, or is damaged there.
  package static func read(_ descriptor: CInt, size: UInt64) -> RecordingMetadata? {
    guard let place = offset(descriptor, size: size),
      let head = try? RecordingFile.read(from: descriptor, at: place, count: windowSize, path: ""),
      let length = Self.size(head)
    else { return nil }
    if length <= head.readableBytes { return RecordingMetadata(stored: head) }
    let all = try? RecordingFile.read(from: descriptor, at: place, count: length, path: "")
    return all.flatMap { RecordingMetadata(stored: $0) }
  }

  /// Position at which the metadata of a file of `size` bytes would begin.
  static func offset(_ descriptor: CInt, size: UInt64) -> UInt64? {
    let annex = try? FileOutline.annex(size: size) { offset, count throws(RecordingError) in
      try RecordingFile.read(from: descriptor, at: offset, count: count, path: "")
    }
    return annex?.lowerBound
  }

  /// Marks a finished file as salvaged, durably. Does nothing if it has no metadata.
  static func noteSalvaged(_ descriptor: CInt, size: UInt64, path: String) throws(RecordingError) {
    guard let place = offset(descriptor, size: size),
      let head = try? RecordingFile.read(from: descriptor, at: place, count: headSize, path: path),
      Self.size(head) != nil
    else { return }
    try RecordingFile.write(
      ByteBuffer(bytes: [1]), to: descriptor, at: place + UInt64(salvagedOffset), path: path)
    guard fdatasync(descriptor) == 0 else { throw .system("make durable", path, errno: errno) }
  }
}

extension RecordingFolder {
  /// The metadata of a file in this folder.
  func metadata(of name: String) -> RecordingMetadata? {
    guard let (file, status) = openFile(name, O_RDONLY) else { return nil }
    defer { close(file) }
    return RecordingMetadata.read(file, size: UInt64(clamping: status.st_size))
  }
}
