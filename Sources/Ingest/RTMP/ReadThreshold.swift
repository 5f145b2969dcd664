internal import Base

/// How many bytes the system collects before it wakes the reader of a publisher (SO_RCVLOWAT). A wake-up costs more than
/// a read, and most messages are audio frames of a few hundred bytes. They wait for the next frame of video, which comes
/// within 50 ms and is larger. A frame of video waits only if it is much smaller than those before it. A value type.
///
/// What is not read is acknowledged late, up to 40 ms. The system of a sender that has not asked for TCP_NODELAY may hold the
/// next bytes back until then (Nagle's algorithm, RFC 9293 §3.7.4). Linux acknowledges at once what is more than the sender's
/// usual segment, so few frames wait. Before the first audio there is nothing to gain, and nothing is collected between messages.
struct ReadThreshold {
  /// The frames of one slice decide for the next one. In nanoseconds.
  static let slice: Int64 = 1_000_000_000
  /// Longest time between two frames of video for which audio waits, in nanoseconds.
  static let longestWait: Int64 = 50_000_000
  /// So many headers that came alone within a slice show a sender that writes them apart.
  static let headersAlone = 3
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
  private var hasAudio = false
  /// Headers that came alone in this slice. Too many of them end all collecting.
  private var headers = 0
  private var isOff = false

  /// Takes the size of a frame of video and its arrival.
  mutating func saw(frame bytes: Int, now: MonotonicTime) {
    if now &- newest > Self.longestWait { (isEven, expected) = (false, nil) }
    newest = now
    if now &- began >= Self.slice {
      expected = isEven ? min(smallest, bytes) : nil
      (began, smallest, isEven, headers) = (now, bytes, true, 0)
      return
    }
    smallest = min(smallest, bytes)
    // At once, so that the next frame of this size is not late.
    if let known = expected { expected = min(known, bytes) }
  }

  mutating func sawAudio() { hasAudio = true }

  /// Whether the sender writes messages as a whole.
  var mayCollect: Bool { !isOff }

  /// A header came without any byte behind it. Some senders write it by itself, as ffmpeg does. Their system may then send
  /// the rest only after an acknowledgement (Nagle's algorithm), so the header has to be read at once.
  mutating func sawHeaderAlone() {
    headers += 1
    if headers >= Self.headersAlone { isOff = true }
  }

  /// Nothing is expected before the frames have come evenly for a slice.
  mutating func forget() { (began, newest, smallest, isEven, expected) = (.zero, .zero, .max, false, nil) }

  /// Bytes to collect where no message has begun. 1: none.
  func bytes(now: MonotonicTime) -> Int {
    guard hasAudio, mayCollect, let expected, now &- newest <= Self.longestWait else { return 1 }
    // Half of it: the next frame may be smaller than all before.
    let bytes = min(expected / 2, Self.most)
    return bytes < Self.least ? 1 : bytes
  }
}
