internal import Base
package import NIOCore
internal import Storage

/// Reads and writes at any position of a file. Offsets are those of the file itself.
extension RecordingFile {
  /// Up to `count` bytes at `offset`; fewer at the end of the file.
  func read(at offset: UInt64, count: Int) throws(RecordingError) -> ByteBuffer {
    try Self.read(from: descriptor, at: offset, count: count, path: path)
  }

  static func read(
    from descriptor: CInt, at offset: UInt64, count: Int, path: String
  ) throws(RecordingError) -> ByteBuffer {
    do throws(StorageError) {
      return try File(descriptor).read(at: Int(clamping: offset), count: count)
    } catch {
      throw .system("read", path, errno: error.errno)
    }
  }

  /// The checksum of `count` bytes at `offset`.
  static func checksum(
    of descriptor: CInt, at offset: UInt64, count: Int, path: String
  ) throws(RecordingError) -> UInt32 {
    var checksum = Checksum()
    var done = 0
    while done < count {
      let bytes = try read(
        from: descriptor, at: offset + UInt64(done), count: min(count - done, readStep), path: path)
      guard bytes.readableBytes > 0 else { break }
      checksum.add(bytes)
      done += bytes.readableBytes
    }
    return checksum.value
  }

  private static let readStep = 1 << 20

  package static func write(
    _ bytes: ByteBuffer, to descriptor: CInt, at offset: UInt64, path: String, calls: DiskCalls = .system
  ) throws(RecordingError) {
    do throws(StorageError) {
      try File(descriptor).write(bytes, at: Int(clamping: offset), by: calls.write)
    } catch {
      throw .system("write", path, errno: error.errno)
    }
  }
}
