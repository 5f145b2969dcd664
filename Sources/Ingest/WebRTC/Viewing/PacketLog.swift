internal import Base
internal import NIOCore

/// The newest packets of a track, for all of its viewers: what waits for slow ones, what is sent again, and all since the
/// newest key frame. Packets have numbers that rise by one.
struct PacketLog {
  struct Packet {
    let piece: RTPPiece
    /// On the media clock of the track.
    let timestamp: UInt32
    /// The number of its frame, rising by one.
    let frame: Int
    let arrived: MonotonicTime
  }

  /// The number of the oldest packet that is kept, and of the next one.
  private(set) var start = 0
  private(set) var end = 0
  private(set) var byteCount = 0
  /// The number of the first packet of the newest key frame; nil if it is not kept.
  private(set) var keyFrame: Int?
  private var packets = CircularBuffer<Packet>()
  private var frames = 0

  subscript(number: Int) -> Packet? {
    guard number >= start, number < end else { return nil }
    return packets[packets.index(packets.startIndex, offsetBy: number - start)]
  }

  var newest: Packet? { packets.last }

  /// Frames from this packet's to the newest.
  func frames(from number: Int) -> Int { self[number].map { frames - $0.frame } ?? 0 }

  /// Adds a frame's packets, in order.
  mutating func append(_ pieces: [RTPPiece], at timestamp: UInt32, isSync: Bool, now: MonotonicTime) {
    guard !pieces.isEmpty else { return }
    if isSync { keyFrame = end }
    for piece in pieces {
      packets.append(Packet(piece: piece, timestamp: timestamp, frame: frames, arrived: now))
      byteCount += piece.byteCount
    }
    end += pieces.count
    frames += 1
  }

  /// Forgets what is too much, and what is too old and lies before the newest key frame.
  mutating func trim(to limit: Int, now: MonotonicTime) {
    while let oldest = packets.first {
      let isOld = now &- oldest.arrived > WebRTCLimits.keptTime && start < (keyFrame ?? end)
      guard byteCount > limit || isOld else { return }
      packets.removeFirst()
      byteCount -= oldest.piece.byteCount
      start += 1
      if let first = keyFrame, first < start { keyFrame = nil }
    }
  }

  /// Forgets all packets, since some were lost and decoding cannot go on. A number is left out, so that each viewer sees the hole.
  mutating func clear() {
    packets.removeAll()
    end += 1
    (start, byteCount, keyFrame) = (end, 0, nil)
  }
}
