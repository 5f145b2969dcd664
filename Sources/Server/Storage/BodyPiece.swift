package import NIOCore

/// A part of a response body: bytes in memory (box headers, text) or a range of a file (media).
package enum BodyPiece: Sendable {
  case bytes(ByteBuffer)
  case file(FileRange)

  /// The length in bytes.
  package var length: Int {
    switch self {
    case .bytes(let buffer): buffer.readableBytes
    case .file(let range): range.length
    }
  }

  /// The piece without its first `count` bytes; `count` is at most `length`.
  package func dropping(first count: Int) -> BodyPiece {
    switch self {
    case .bytes(var buffer):
      buffer.moveReaderIndex(forwardBy: min(count, buffer.readableBytes))
      return .bytes(buffer)
    case .file(var range):
      range.offset &+= count
      range.length &-= count
      return .file(range)
    }
  }

  /// The first `count` bytes of this piece; `count` is at most `length`.
  package func prefix(_ count: Int) -> BodyPiece {
    switch self {
    case .bytes(let buffer):
      return .bytes(buffer.getSlice(at: buffer.readerIndex, length: count) ?? buffer)
    case .file(var range):
      range.length = count
      return .file(range)
    }
  }

  /// Both pieces as one, when the next continues in the same file. Nil otherwise.
  package func joined(with next: BodyPiece) -> BodyPiece? {
    guard case .file(var range) = self, case .file(let following) = next, range.file === following.file,
      range.offset &+ range.length == following.offset
    else { return nil }
    range.length &+= following.length
    return .file(range)
  }
}

extension [BodyPiece] {
  /// Bytes of the whole body.
  package var totalLength: Int { reduce(0) { $0 &+ $1.length } }

  /// The pieces of the bytes `range` of this body; `range` lies within 0 ..< `totalLength`.
  package func slice(_ range: Range<Int>) -> [BodyPiece] {
    var result: [BodyPiece] = []
    var start = 0
    for piece in self {
      let end = start &+ piece.length
      let wanted =
        Swift.max(range.lowerBound, start)..<Swift.max(range.lowerBound, start, Swift.min(range.upperBound, end))
      if !wanted.isEmpty {
        result.append(piece.dropping(first: wanted.lowerBound &- start).prefix(wanted.count))
      }
      start = end
      if start >= range.upperBound { break }
    }
    return result
  }
}
