internal import Basics
internal import Glibc
internal import NIOCore

/// Reading and writing anywhere in a file, a recording's or another. Offsets are those of the file itself.
extension RecordingFile {
  /// Up to `count` bytes at `offset`; fewer at the end of the file.
  func read(at offset: UInt64, count: Int) throws(RecordingError) -> ByteBuffer {
    try Self.read(from: descriptor, at: offset, count: count, path: path)
  }

  static func read(
    from descriptor: CInt, at offset: UInt64, count: Int, path: String
  ) throws(RecordingError) -> ByteBuffer {
    var buffer = ByteBuffer()
    while buffer.readableBytes < count {
      let at = off_t(clamping: offset &+ UInt64(buffer.readableBytes))
      let wanted = count - buffer.readableBytes
      var failure: CInt = 0
      let read = buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: wanted) { space in
        let count = pread(descriptor, space.baseAddress, wanted, at)
        if count < 0 { failure = errno }
        return max(0, count)
      }
      if failure != 0, failure != EINTR { throw .system("read", path, errno: failure) }
      if failure == 0, read == 0 { break }
    }
    return buffer
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

  static func write(
    _ bytes: ByteBuffer, to descriptor: CInt, at offset: UInt64, path: String, calls: DiskCalls = .system
  ) throws(RecordingError) {
    var left = bytes
    var position = Int(clamping: offset)
    while left.readableBytes > 0 {
      let written = left.withUnsafeReadableBytes { calls.write(descriptor, $0, position) }
      if written == -Int(EINTR) { continue }
      guard written > 0 else { throw .system("write", path, errno: written == 0 ? EIO : CInt(clamping: -written)) }
      left.moveReaderIndex(forwardBy: written)
      position += written
    }
  }
}
