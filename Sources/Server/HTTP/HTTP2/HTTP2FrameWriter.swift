internal import NIOCore
internal import Storage

/// Writes frames into one buffer, which then goes to the socket in one write (RFC 9113 §6). A value.
struct HTTP2FrameWriter {
  private(set) var bytes = ByteBuffer()
  /// The client has named a size of its table, so the next section says that nothing is in it (RFC 7541 §4.2).
  var owesTableSize = false

  private static let emptyTable: UInt8 = 0x20

  var count: Int { bytes.readableBytes }

  /// Takes the bytes. Nothing is kept for a connection that is idle.
  mutating func takeBytes() -> ByteBuffer {
    defer { bytes = ByteBuffer() }
    return bytes
  }

  mutating func reserve(_ count: Int) {
    if bytes.writableBytes < count { bytes.reserveCapacity(bytes.readableBytes &+ count) }
  }

  mutating func head(_ type: UInt8, flags: UInt8 = 0, stream: UInt32, length: Int) {
    bytes.writeMultipleIntegers(UInt32(truncatingIfNeeded: length << 8) | UInt32(type), flags, stream)
  }

  /// The field section of a response.
  mutating func headers(_ section: ByteBuffer, stream: UInt32, isEnd: Bool) {
    let flags = HTTP2FrameType.endsHeaders | (isEnd ? HTTP2FrameType.endsStream : 0)
    var rest = section
    var room = HTTP2FrameHead.longestPayload
    let length = section.readableBytes &+ (owesTableSize ? 1 : 0)
    // Only a very long location needs a second frame.
    head(
      HTTP2FrameType.headers, flags: length <= room ? flags : flags & ~HTTP2FrameType.endsHeaders, stream: stream,
      length: min(length, room))
    if owesTableSize {
      bytes.writeInteger(Self.emptyTable)
      owesTableSize = false
      room &-= 1
    }
    while true {
      if rest.readableBytes <= room {
        bytes.writeImmutableBuffer(rest)
        return
      }
      if let part = rest.readSlice(length: room) { bytes.writeImmutableBuffer(part) }
      room = HTTP2FrameHead.longestPayload
      head(
        HTTP2FrameType.continuation, flags: rest.readableBytes <= room ? HTTP2FrameType.endsHeaders : 0, stream: stream,
        length: min(rest.readableBytes, room))
    }
  }

  mutating func reset(_ stream: UInt32, _ code: HTTP2Code) {
    head(HTTP2FrameType.reset, stream: stream, length: 4)
    bytes.writeInteger(code.rawValue)
  }

  mutating func goAway(last: UInt32, _ code: HTTP2Code) {
    head(HTTP2FrameType.goAway, stream: 0, length: 8)
    bytes.writeMultipleIntegers(last, code.rawValue)
  }

  mutating func windowUpdate(_ stream: UInt32, _ increment: Int) {
    head(HTTP2FrameType.windowUpdate, stream: stream, length: 4)
    bytes.writeInteger(UInt32(truncatingIfNeeded: increment))
  }

  mutating func ping(_ data: UInt64, acknowledges: Bool) {
    head(HTTP2FrameType.ping, flags: acknowledges ? HTTP2FrameType.acknowledges : 0, stream: 0, length: 8)
    bytes.writeInteger(data)
  }

  /// The first frame of the server: what clients may do (RFC 9113 §6.5.2).
  mutating func settings(streams: Int, sectionBytes: Int) {
    head(HTTP2FrameType.settings, stream: 0, length: 12)
    bytes.writeMultipleIntegers(
      UInt16(3), UInt32(clamping: streams), UInt16(6), UInt32(clamping: sectionBytes))
  }

  mutating func acknowledgeSettings() {
    head(HTTP2FrameType.settings, flags: HTTP2FrameType.acknowledges, stream: 0, length: 0)
  }

  /// A whole body that lies in memory, as frames. What the pieces have beyond `length` is left out. Throws if a piece is not what
  /// it says; then nothing is written.
  mutating func data(_ pieces: [BodyPiece], length: Int, stream: UInt32) throws(PieceQueue.BrokenFile) {
    let start = bytes.writerIndex
    // The bytes of the frame that are missing.
    var (left, frame) = (length, 0)
    for piece in pieces {
      var piece = piece
      while piece.length > 0, left &+ frame > 0 {
        if frame == 0 {
          frame = min(left, HTTP2FrameHead.longestPayload)
          left &-= frame
          head(HTTP2FrameType.data, flags: left == 0 ? HTTP2FrameType.endsStream : 0, stream: stream, length: frame)
        }
        let count = min(frame, piece.length)
        let part = count == piece.length ? piece : piece.prefix(count)
        switch part {
        case .bytes(let part): bytes.writeImmutableBuffer(part)
        case .file(let range):
          guard range.copy(into: &bytes) else {
            bytes.moveWriterIndex(to: start)
            throw PieceQueue.BrokenFile(range: range)
          }
        }
        frame &-= count
        piece = piece.dropping(first: count)
      }
    }
  }

  /// Bytes from the front of a queue, as one frame.
  mutating func data(
    from queue: inout PieceQueue, _ count: Int, stream: UInt32, isEnd: Bool
  ) throws(PieceQueue.BrokenFile) {
    let start = bytes.writerIndex
    head(HTTP2FrameType.data, flags: isEnd ? HTTP2FrameType.endsStream : 0, stream: stream, length: count)
    do throws(PieceQueue.BrokenFile) {
      try queue.moveBytes(count, into: &bytes)
    } catch {
      bytes.moveWriterIndex(to: start)
      throw error
    }
  }
}
