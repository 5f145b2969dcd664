internal import Base
internal import NIOCore

/// The messages inside an aggregate message (RTMP 7.1.6): a sequence of FLV tags. Their times are relative to the time
/// of the first tag.
struct AggregateMessage {
  private var rest: ByteBuffer
  private let timestamp: UInt32
  private let streamID: UInt32
  private var firstTime: UInt32?

  init(_ message: RTMPMessage) {
    rest = message.payload
    timestamp = message.timestamp
    streamID = message.streamID
  }

  /// The next message; nil at the end. An aggregate inside an aggregate is an error.
  mutating func next() throws(WireError) -> RTMPMessage? {
    guard rest.readableBytes > 0 else { return nil }
    guard let type: UInt8 = rest.readInteger(), let size = rest.readU24(), let low = rest.readU24(),
      let high: UInt8 = rest.readInteger(), rest.readU24() != nil, let body = rest.readSlice(length: Int(size))
    else { throw WireError(.malformed, "an aggregate message ends inside one of its parts") }
    guard type != RTMPMessageType.aggregate else {
      throw WireError(.malformed, "an aggregate message inside an aggregate message")
    }
    // The size of the tag follows it. The last tag may lack it.
    rest.moveReaderIndex(forwardBy: min(4, rest.readableBytes))
    let time = UInt32(high) << 24 | low
    let first = firstTime ?? time
    firstTime = first
    // A copy of its own size: a slice would keep the whole aggregate in memory.
    return RTMPMessage(
      type: type, timestamp: timestamp &+ (time &- first), streamID: streamID,
      payload: ByteBuffer(bytes: body.readableBytesView))
  }
}
