package import NIOCore
internal import Storage

/// Bytes that are being pushed to another place of their file.
private struct BytesMove: Error {}

extension [BodyPiece] {
  /// All of the bytes.
  package func read() throws -> ByteBuffer {
    try reduce(into: ByteBuffer()) { all, piece in
      switch piece {
      case .bytes(let bytes): all.writeImmutableBuffer(bytes)
      case .file(let range):
        guard case .read(let bytes) = range.file.read(at: range.offset, count: range.length) else {
          throw BytesMove()
        }
        all.writeImmutableBuffer(bytes)
      }
    }
  }
}
