internal import NIOCore
internal import Storage

/// Pieces that wait to be sent, in order.
struct PieceQueue {
  /// A file is shorter than a range of it.
  struct BrokenFile: Error, CustomStringConvertible {
    let range: FileRange
    var description: String { "a file is too short for a range of it: offset \(range.offset), length \(range.length)" }
  }

  private(set) var pieces = CircularBuffer<BodyPiece>(initialCapacity: 1)

  var first: BodyPiece? { pieces.first }
  var count: Int { pieces.count }
  var isEmpty: Bool { pieces.isEmpty }

  /// The next piece, if it is a range of a file on disk. The caller must have it read first.
  var nextOnDisk: FileRange? {
    guard case .file(let range) = pieces.first, range.file.kind == .disk else { return nil }
    return range
  }

  /// It contains a range of a segment whose memory is needed.
  var isCalledIn: Bool {
    pieces.contains { piece in
      if case .file(let range) = piece { range.file.isCalledIn } else { false }
    }
  }

  /// Appends a piece, which is not empty. Adjacent ranges of one file are joined.
  mutating func append(_ piece: BodyPiece) {
    if let last = pieces.last, let joined = last.joined(with: piece) {
      pieces[pieces.index(before: pieces.endIndex)] = joined
    } else {
      pieces.append(piece)
    }
  }

  /// Removes `count` bytes from the front.
  mutating func drop(_ count: Int) {
    var left = count
    while left > 0, let piece = pieces.first {
      if piece.length <= left {
        left &-= piece.length
        pieces.removeFirst()
      } else {
        pieces[pieces.startIndex] = piece.dropping(first: left)
        left = 0
      }
    }
  }

  /// Replaces the start of the first piece with the bytes that were read from there.
  mutating func replaceFront(with bytes: ByteBuffer) {
    drop(bytes.readableBytes)
    pieces.prepend(.bytes(bytes))
  }

  mutating func removeAll() { pieces.removeAll() }

  /// Takes up to `limit` bytes from the front, up to the first range on disk, as one buffer. They are copied unless they are a
  /// slice of one buffer.
  mutating func takeBytes(upTo limit: Int, allocator: ByteBufferAllocator) throws(BrokenFile) -> ByteBuffer {
    var wanted = 0
    var isAlone = true
    for piece in pieces {
      if case .file(let range) = piece, range.file.kind == .disk { break }
      isAlone = wanted == 0
      wanted = min(limit, wanted &+ piece.length)
      if wanted >= limit { break }
    }
    if isAlone, case .bytes(let bytes) = pieces.first {
      drop(wanted)
      return bytes.getSlice(at: bytes.readerIndex, length: wanted) ?? bytes
    }
    var buffer = allocator.buffer(capacity: wanted)
    try moveBytes(wanted, into: &buffer)
    return buffer
  }

  /// The bytes at the front, up to the first range on disk and at most `limit`, and whether nothing is behind them.
  func bytesInMemory(upTo limit: Int) -> (count: Int, isAll: Bool) {
    var count = 0
    for piece in pieces {
      if case .file(let range) = piece, range.file.kind == .disk { return (count, false) }
      count &+= piece.length
      if count > limit { return (limit, false) }
    }
    return (count, true)
  }

  /// Moves `count` bytes from the front to the end of `buffer`. They are there, and not on a disk.
  mutating func moveBytes(_ count: Int, into buffer: inout ByteBuffer) throws(BrokenFile) {
    var left = count
    while left > 0, let piece = pieces.first {
      let part = piece.length <= left ? piece : piece.prefix(left)
      switch part {
      case .bytes(let bytes): buffer.writeImmutableBuffer(bytes)
      case .file(let range): guard range.copy(into: &buffer) else { throw BrokenFile(range: range) }
      }
      left &-= part.length
      drop(part.length)
    }
  }
}
