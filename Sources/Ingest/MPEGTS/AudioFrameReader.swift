internal import FMP4
internal import NIOCore

/// Cuts the bytes of an audio track into coded frames. Bytes go in as they come; a frame may span several PES packets,
/// and a packet may hold several frames.
protocol AudioFrameReader {
  var coding: CodecID { get }
  /// Bytes of the stream before those that are kept.
  var position: Int { get }
  /// Bytes that are kept for later.
  var heldBytes: Int { get }
  /// Places with bytes that are no frame.
  var damaged: Int { get }
  /// The next bytes begin a PES packet.
  mutating func begin()
  mutating func append(_ bytes: ByteBuffer)
  /// The next whole frame. Nil if more bytes are needed.
  mutating func next() -> AudioFrame?
  /// Drops the bytes that are kept.
  mutating func drop()
}

/// One coded frame of audio.
struct AudioFrame {
  /// Position of its first byte in the stream, its header included.
  var position: Int
  var payload: ByteBuffer
  /// The decoder configuration record that it needs.
  var record: [UInt8]
  /// Its length in samples, at `rate` per second.
  var samples: Int64
  var rate: UInt32
}

/// The unread bytes of an audio track.
struct AudioBytes {
  private static let worthMoving = 4096

  private(set) var bytes = ByteBuffer()
  private(set) var position = 0

  var count: Int { bytes.readableBytes }

  mutating func append(_ more: ByteBuffer) {
    // Used bytes do not pile up, and those that are kept are rarely moved.
    if bytes.readerIndex > max(Self.worthMoving, bytes.readableBytes) { bytes.discardReadBytes() }
    bytes.writeImmutableBuffer(more)
  }

  func byte(_ offset: Int) -> UInt8? {
    guard offset >= 0, offset < count else { return nil }
    return bytes.getInteger(at: bytes.readerIndex &+ offset)
  }

  mutating func skip(_ count: Int) {
    let count = min(max(count, 0), self.count)
    bytes.moveReaderIndex(forwardBy: count)
    position &+= count
  }

  /// A copy of the next bytes. Nil if they are not there.
  mutating func take(_ count: Int) -> ByteBuffer? {
    guard let part = bytes.readSlice(length: count) else { return nil }
    position &+= count
    return ByteBuffer(buffer: part)
  }

  mutating func removeAll() { skip(count) }
}
