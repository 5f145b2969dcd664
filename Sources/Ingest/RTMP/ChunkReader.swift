internal import Base
internal import NIOCore

/// Assembles messages from chunks (RTMP 5.3): all header formats, extended timestamps, interleaved chunk streams, Set
/// Chunk Size and Abort. Input may be cut anywhere. The payload is copied once. Its buffer grows as bytes arrive,
/// whatever size the header announces.
struct ChunkReader {
  /// One chunk stream: the header that later chunks refer to, and the message being assembled.
  private struct Stream {
    let id: UInt32
    var timestamp: UInt32 = 0
    /// Added to the timestamp by a type 3 chunk that begins a message. After a type 0 chunk it is the timestamp itself
    /// (RTMP 5.3.1.2.4).
    var delta: UInt32 = 0
    /// Extended timestamp of the last header that had one.
    var extended: UInt32?
    var length = 0
    var type: UInt8 = 0
    var messageStream: UInt32 = 0
    var hasHeader = false
    /// Missing bytes of the current message; nil between messages.
    var remaining: Int?
    var payload = ByteBuffer()
  }

  /// The fields of a complete header, before it takes effect.
  private struct Header {
    var format: UInt8
    var chunkStream: UInt32
    /// Bytes of basic header, message header, and extended timestamp if there is one.
    var size: Int
    var time: UInt32 = 0
    var extended: UInt32?
    var length = 0
    var type: UInt8 = 0
    var messageStream: UInt32 = 0
  }

  /// The longest header: 3 bytes of basic header, 11 of message header, 4 of extended timestamp.
  private static let longestHeader = 18

  /// Set once the peer may publish. Until then the memory limits are lower.
  var trusted = false

  private(set) var chunkSize = 128
  private var streams: [Stream] = []
  /// The bytes of an incomplete header.
  private var carry = ByteBuffer()
  /// The current chunk: its stream, and the number of missing bytes.
  private var current: (stream: Int, remaining: Int)?
  /// Nothing of the current chunk's payload has come.
  private var isAtPayload = false
  /// Bytes of unfinished messages.
  private(set) var partialBytes = 0
  private var smallChunks = TokenBucket(
    burst: Double(RTMPLimits.smallChunkBurst), perSecond: Double(RTMPLimits.smallChunksPerSecond))

  /// Least number of bytes that end the message of the current chunk. Nil between messages.
  var missing: Int? {
    if let current { return streams[current.stream].remaining }
    return carry.readableBytes > 0 || partialBytes > 0 ? 1 : nil
  }

  /// The bytes so far end in a chunk's header or right behind it.
  var endsWithHeader: Bool { carry.readableBytes > 0 || current != nil && isAtPayload }

  /// The next whole message, or nil if more bytes are needed. Consumes what it reads. Applies Set Chunk Size and Abort
  /// and also returns them. `now` is for the limit on small chunks.
  mutating func next(_ bytes: inout ByteBuffer, now: MonotonicTime) throws(WireError) -> RTMPMessage? {
    while true {
      if let chunk = current {
        if let message = try readBody(&bytes, chunk) {
          try obey(message)
          return message
        }
        if current != nil { return nil }
      }
      guard try readHeader(&bytes, now: now) else { return nil }
    }
  }

  // MARK: headers

  /// False if more bytes are needed.
  private mutating func readHeader(_ bytes: inout ByteBuffer, now: MonotonicTime) throws(WireError) -> Bool {
    guard bytes.readableBytes > 0 else { return false }
    let header: Header
    if carry.readableBytes == 0 {
      guard let parsed = try parseHeader(bytes) else {
        carry.clear()
        carry.writeBuffer(&bytes)
        return false
      }
      bytes.moveReaderIndex(forwardBy: parsed.size)
      header = parsed
    } else {
      let held = carry.readableBytes
      var joined = carry
      let more = min(bytes.readableBytes, Self.longestHeader)
      if let view = bytes.getSlice(at: bytes.readerIndex, length: more) { joined.writeImmutableBuffer(view) }
      guard let parsed = try parseHeader(joined) else {
        carry.writeBuffer(&bytes)
        return false
      }
      // The header was incomplete with the held bytes, so it normally needs new bytes.
      bytes.moveReaderIndex(forwardBy: max(0, parsed.size - held))
      if parsed.size < held {
        // Held bytes after the header: four bytes that could have been an extended timestamp but are payload.
        var rest = carry
        rest.moveReaderIndex(forwardBy: parsed.size)
        rest.writeBuffer(&bytes)
        bytes = rest
      }
      carry.clear()
      header = parsed
    }
    if chunkSize < RTMPLimits.smallChunkSize, !smallChunks.take(now: now) {
      throw WireError(
        .limit,
        "chunk size \(chunkSize) costs too much to read: more than \(RTMPLimits.smallChunksPerSecond) chunks a second")
    }
    try begin(header)
    return true
  }

  /// Parses a header without consuming it. Nil if it is incomplete.
  private func parseHeader(_ bytes: ByteBuffer) throws(WireError) -> Header? {
    let start = bytes.readerIndex
    guard let first: UInt8 = bytes.getInteger(at: start) else { return nil }
    var header = Header(format: first >> 6, chunkStream: UInt32(first & 0x3F), size: 1)
    // RTMP 5.3.1.1: values 0 and 1 mean that the chunk stream number is in the next one or two bytes.
    if header.chunkStream == 0 {
      guard let id: UInt8 = bytes.getInteger(at: start + 1) else { return nil }
      header.chunkStream = UInt32(id) + 64
      header.size = 2
    } else if header.chunkStream == 1 {
      guard let id: UInt16 = bytes.getInteger(at: start + 1, endianness: .little) else { return nil }
      header.chunkStream = UInt32(id) + 64
      header.size = 3
    }
    let known = streams.firstIndex { $0.id == header.chunkStream }
    let at = start + header.size
    if header.format == 3 {
      guard let known, streams[known].hasHeader else {
        throw WireError(.malformed, "chunk stream \(header.chunkStream) begins with a type 3 header")
      }
      // Some senders repeat the extended timestamp in type 3 chunks, some do not. Its value decides.
      if let extended = streams[known].extended {
        guard let value: UInt32 = bytes.getInteger(at: at) else { return nil }
        if value == extended { header.size += 4 }
      }
      return header
    }
    let fieldBytes = header.format == 0 ? 11 : header.format == 1 ? 7 : 3
    guard bytes.readableBytes >= header.size + fieldBytes, let time = bytes.u24(at: at) else { return nil }
    header.time = time
    if header.format <= 1 {
      header.length = Int(bytes.u24(at: at + 3) ?? 0)
      header.type = bytes.getInteger(at: at + 6) ?? 0
    }
    if header.format == 0 {
      header.messageStream = bytes.getInteger(at: at + 7, endianness: .little) ?? 0
    }
    header.size += fieldBytes
    if time == 0xFF_FFFF {
      guard let value: UInt32 = bytes.getInteger(at: at + fieldBytes) else { return nil }
      header.time = value
      header.extended = value
      header.size += 4
    }
    return header
  }

  /// Applies a header: it begins a message or continues one.
  private mutating func begin(_ header: Header) throws(WireError) {
    let index = try index(of: header)
    if header.format != 3 {
      guard streams[index].remaining == nil else {
        throw WireError(
          .malformed, "chunk stream \(header.chunkStream) begins a message inside one that is not complete")
      }
      streams[index].extended = header.extended
      streams[index].delta = header.time
      if header.format == 0 {
        streams[index].timestamp = header.time
        streams[index].messageStream = header.messageStream
      } else {
        streams[index].timestamp &+= header.time
      }
      if header.format <= 1 {
        streams[index].length = header.length
        streams[index].type = header.type
      }
      streams[index].hasHeader = true
    } else if streams[index].remaining == nil {
      streams[index].timestamp &+= streams[index].delta
    }
    let length = streams[index].length
    if streams[index].remaining == nil {
      let limit =
        RTMPMessageType.isMedia(streams[index].type)
        ? RTMPLimits.mediaMessageBytes : RTMPLimits.commandMessageBytes
      guard length <= limit else {
        throw WireError(
          .limit, "message of type \(streams[index].type) announces \(length) bytes; at most \(limit) are taken")
      }
      streams[index].remaining = length
      let reservation =
        trusted ? RTMPLimits.firstReservationWhilePublishing : RTMPLimits.firstReservationBeforePublish
      streams[index].payload = ByteBuffer()
      if length > 0 { streams[index].payload.reserveCapacity(min(length, reservation)) }
    }
    current = (index, min(streams[index].remaining ?? 0, chunkSize))
    isAtPayload = true
  }

  private mutating func index(of header: Header) throws(WireError) -> Int {
    if let known = streams.firstIndex(where: { $0.id == header.chunkStream }) {
      guard streams[known].hasHeader || header.format <= 1 else {
        throw WireError(.malformed, "chunk stream \(header.chunkStream) begins with a type \(header.format) header")
      }
      return known
    }
    guard header.format <= 1 else {
      throw WireError(.malformed, "chunk stream \(header.chunkStream) begins with a type \(header.format) header")
    }
    guard streams.count < RTMPLimits.chunkStreams else {
      throw WireError(.limit, "more than \(RTMPLimits.chunkStreams) chunk streams")
    }
    streams.append(Stream(id: header.chunkStream))
    return streams.count - 1
  }

  // MARK: bodies

  /// Copies the available bytes of the current chunk. Returns the message once it is complete.
  private mutating func readBody(
    _ bytes: inout ByteBuffer, _ chunk: (stream: Int, remaining: Int)
  ) throws(WireError) -> RTMPMessage? {
    let count = min(chunk.remaining, bytes.readableBytes)
    let index = chunk.stream
    if count > 0, let slice = bytes.readSlice(length: count) {
      isAtPayload = false
      partialBytes += count
      let limit = trusted ? RTMPLimits.partialBytesWhilePublishing : RTMPLimits.partialBytesBeforePublish
      guard partialBytes <= limit else {
        throw WireError(.limit, "unfinished messages hold more than \(limit) bytes")
      }
      streams[index].payload.writeImmutableBuffer(slice)
    }
    let left = (streams[index].remaining ?? 0) - count
    streams[index].remaining = left
    guard left == 0 else {
      let inChunk = chunk.remaining - count
      current = inChunk > 0 ? (index, inChunk) : nil
      return nil
    }
    current = nil
    streams[index].remaining = nil
    partialBytes -= streams[index].payload.readableBytes
    let message = RTMPMessage(
      type: streams[index].type, timestamp: streams[index].timestamp, streamID: streams[index].messageStream,
      payload: streams[index].payload)
    streams[index].payload = ByteBuffer()
    return message
  }

  /// Applies the two control messages for the chunk stream itself (RTMP 5.4.1, 5.4.2).
  private mutating func obey(_ message: RTMPMessage) throws(WireError) {
    switch message.type {
    case RTMPMessageType.setChunkSize:
      guard let size: UInt32 = message.payload.getInteger(at: message.payload.readerIndex) else {
        throw WireError(.malformed, "Set Chunk Size of \(message.payload.readableBytes) bytes; it has 4")
      }
      guard size > 0, size <= UInt32(Int32.max) else {
        throw WireError(.malformed, "chunk size \(size); it is 1 to 2147483647")
      }
      chunkSize = min(Int(size), RTMPLimits.largestChunkSize)
    case RTMPMessageType.abort:
      guard let id: UInt32 = message.payload.getInteger(at: message.payload.readerIndex) else {
        throw WireError(.malformed, "Abort Message of \(message.payload.readableBytes) bytes; it has 4")
      }
      guard let index = streams.firstIndex(where: { $0.id == id }) else { return }
      partialBytes -= streams[index].payload.readableBytes
      streams[index].remaining = nil
      streams[index].payload = ByteBuffer()
    default: break
    }
  }
}
