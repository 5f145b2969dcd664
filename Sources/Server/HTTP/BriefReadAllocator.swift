internal import NIOCore

/// Read buffers of connections that rarely read. NIO keeps the first buffer of a channel for all its life, and with
/// `maxMessagesPerRead` of 1 it keeps no other. So the first one is small: it takes the beginning of the first request, and
/// a second read the rest. Later ones are given back after each read: a viewer that waits has none.
struct BriefReadAllocator: RecvByteBufferAllocator {
  /// In bytes. The usual one takes a whole request.
  static let first = 16
  static let usual = 1024
  static let largest = 16 * 1024

  private var size = first

  func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { allocator.buffer(capacity: size) }

  mutating func record(actualReadBytes: Int) -> Bool {
    if actualReadBytes >= size {
      size = min(max(size * 4, Self.usual), Self.largest)
    } else if actualReadBytes < size / 4 {
      size = Self.usual
    }
    // The next one may be larger, so NIO does not use the kept one again.
    return true
  }
}

extension Channel {
  /// Reads as a connection does whose client mostly waits.
  func readBriefly() {
    try? syncOptions?.setOption(.recvAllocator, value: BriefReadAllocator())
    try? syncOptions?.setOption(.maxMessagesPerRead, value: 1)
  }

  /// Reads as a connection does that carries a publisher's media. They come in bursts of a frame each: a buffer that grows from
  /// a small one takes three wake-ups for such a burst, and four reads of 16 KiB take one.
  func readBursts() {
    try? syncOptions?.setOption(
      .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: BriefReadAllocator.largest))
    try? syncOptions?.setOption(.maxMessagesPerRead, value: 4)
  }
}
