internal import NIOCore

/// Finds the packets in the bytes of a transport stream, from any byte on (ISO/IEC 13818-1 §2.4.3.2). Takes packets of
/// 188 bytes, those with a time code in front (192 bytes), and those with a checksum behind (204 bytes). Bytes go in,
/// in pieces of any size; packets of 188 bytes come out.
package struct TransportPacketFinder {
  static let packetBytes = 188
  package static let syncByte: UInt8 = 0x47
  /// Distances from packet to packet. The time code of 192 belongs to the packet behind it, but that makes no
  /// difference here.
  private static let distances = [188, 192, 204]
  /// Packets in a row that show where packets begin.
  private static let confirmingPackets = 3

  /// Bytes that are no part of a packet.
  private(set) var skippedBytes = 0
  /// Packets without their first byte, in the midst of others.
  private(set) var damagedPackets = 0
  private var bytes = ByteBuffer()
  /// Nil until it is known where packets begin.
  private var distance: Int?
  /// Bytes until the next packet begins.
  private var gap = 0

  /// Adds received bytes.
  mutating func append(_ more: ByteBuffer) {
    guard bytes.readableBytes > 0 else {
      bytes = more
      return
    }
    // A new buffer, so that used bytes do not pile up in front of the unused ones.
    var joined = ByteBuffer()
    joined.reserveCapacity(bytes.readableBytes &+ more.readableBytes)
    joined.writeImmutableBuffer(bytes)
    joined.writeImmutableBuffer(more)
    bytes = joined
  }

  /// Bytes are missing before the next ones: an unfinished packet cannot be completed.
  mutating func breakOff() {
    skip(bytes.readableBytes)
    gap = 0
  }

  /// The next packet. Nil if more bytes are needed. `isEnd` is whether none will come.
  mutating func next(isEnd: Bool = false) -> ByteBuffer? {
    while true {
      guard let distance else {
        guard search(isEnd: isEnd) else { return nil }
        continue
      }
      if gap > 0 {
        let skipped = min(gap, bytes.readableBytes)
        bytes.moveReaderIndex(forwardBy: skipped)
        gap &-= skipped
        if gap > 0 { return nil }
      }
      guard let first = byte(0) else { return nil }
      if first == Self.syncByte {
        guard let packet = bytes.readSlice(length: Self.packetBytes) else { return nil }
        gap = distance &- Self.packetBytes
        return packet
      }
      guard let following = byte(distance) else {
        if isEnd { skip(bytes.readableBytes) }
        return nil
      }
      if following == Self.syncByte {
        damagedPackets &+= 1
        bytes.moveReaderIndex(forwardBy: distance)
      } else {
        self.distance = nil
      }
    }
  }

  /// Finds where packets begin, and skips what is in front. False if more bytes are needed.
  private mutating func search(isEnd: Bool) -> Bool {
    let needed = Self.distances.reduce(0) { max($0, $1) } &* (Self.confirmingPackets &- 1)
    var offset = 0
    while let found = byte(offset) {
      if found == Self.syncByte {
        guard isEnd || byte(offset &+ needed) != nil else { break }
        if let distance = Self.distances.first(where: { isConfirmed(offset, distance: $0, isEnd: isEnd) }) {
          skip(offset)
          self.distance = distance
          gap = 0
          return true
        }
      }
      offset &+= 1
    }
    skip(offset)
    return false
  }

  /// Whether packets of that distance begin at an offset. At the end of all bytes fewer of them are enough.
  private func isConfirmed(_ offset: Int, distance: Int, isEnd: Bool) -> Bool {
    var at = offset
    for number in 0..<Self.confirmingPackets {
      guard let found = byte(at) else { return isEnd && number > 0 && at &- offset >= Self.packetBytes }
      if found != Self.syncByte { return false }
      at &+= distance
    }
    return true
  }

  private func byte(_ offset: Int) -> UInt8? {
    guard offset < bytes.readableBytes else { return nil }
    return bytes.getInteger(at: bytes.readerIndex &+ offset)
  }

  private mutating func skip(_ count: Int) {
    bytes.moveReaderIndex(forwardBy: min(count, bytes.readableBytes))
    skippedBytes &+= count
  }
}
