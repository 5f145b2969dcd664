internal import FMP4

/// How many bytes the system collects before it wakes the reader of a publisher (SO_RCVLOWAT). To be woken costs more than
/// to read what came, and most messages are frames of audio of a few hundred bytes. They wait for the next frame of video,
/// which comes within 50 ms and is larger. A frame of video waits for nothing. A value type.
struct ReadThreshold {
  /// Frames of this long decide for the next such time, in nanoseconds.
  static let slice: Int64 = 1_000_000_000
  /// Longest time between two frames of video for which audio waits, in nanoseconds.
  static let longestWait: Int64 = 50_000_000
  /// Most bytes that wait for the next frame. Fewer than the least are not worth it.
  static let most = 2 << 10
  static let least = 256

  private var began = MonotonicTime.zero
  private var newest = MonotonicTime.zero
  /// The smallest frame of this slice, and whether its frames came evenly.
  private var smallest = Int.max
  private var isEven = false
  /// The smallest frame that is expected; nil if frames come unevenly.
  private var expected: Int?

  /// Takes the size of a frame of video and its arrival.
  mutating func saw(frame bytes: Int, now: MonotonicTime) {
    if now &- newest > Self.longestWait { (isEven, expected) = (false, nil) }
    newest = now
    if now &- began >= Self.slice {
      expected = isEven ? min(smallest, bytes) : nil
      (began, smallest, isEven) = (now, bytes, true)
      return
    }
    smallest = min(smallest, bytes)
    // At once, so that the next frame of this size is not late.
    if let known = expected { expected = min(known, bytes) }
  }

  /// Nothing is expected before the frames have come evenly for a slice.
  mutating func forget() { self = ReadThreshold() }

  /// Bytes to collect where no message has begun. 1: none.
  func bytes(now: MonotonicTime) -> Int {
    guard let expected, now &- newest <= Self.longestWait else { return 1 }
    // Half of it: the next frame may be smaller than all before.
    let bytes = min(expected / 2, Self.most)
    return bytes < Self.least ? 1 : bytes
  }
}
