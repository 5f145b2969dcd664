internal import FMP4

/// How many bytes the system collects before it wakes the reader of a publisher (SO_RCVLOWAT). A wake-up costs more than
/// a read, and most messages are audio frames of a few hundred bytes. They wait for the next frame of video, which comes
/// within 50 ms and is larger. A frame of video waits only if it is much smaller than those before it. A value type.
///
/// What is collected is acknowledged late, up to 40 ms. The system of a sender that has not asked for TCP_NODELAY may hold
/// the next bytes back until then (Nagle's algorithm, RFC 9293 §3.7.4). Nobody says which senders these are. So the first
/// frames after collecting began are compared with those before: where they come later, it ends, after some tries for good.
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
  /// So many frames before collecting are compared with as many since.
  static let compared = 15
  /// Nanoseconds by which frames may come later since. What hides below is no loss.
  static let longestDelay: Int64 = 4_000_000
  /// Frames that came later so often in a row did so because of what was collected. Once may be the network.
  static let tries = 3

  /// Whether frames come later since bytes are collected.
  private enum Trial {
    /// Nothing is collected.
    case none
    /// It is being seen. `usual` is how late they came before.
    case running(usual: Int64)
    /// They do not.
    case passed
  }

  private var began = MonotonicTime.zero
  private var newest = MonotonicTime.zero
  /// The smallest frame of this slice, and whether its frames came evenly.
  private var smallest = Int.max
  private var isEven = false
  /// The smallest frame that is expected; nil if frames come unevenly.
  private var expected: Int?
  private var trial = Trial.none
  private var failures = 0
  /// From the time that frames state to their arrival, in nanoseconds from an unknown origin: of the newest `compared` ones
  /// while nothing is collected, of all since then while that is tried.
  private var delays: [Int64] = []
  private var hasAudio = false
  /// Headers that came alone in this slice. Too many of them end all collecting.
  private var headers = 0
  private var isOff = false

  /// Takes the size of a frame of video, the time that it states in milliseconds, and its arrival.
  mutating func saw(frame bytes: Int, sent: UInt32, now: MonotonicTime) {
    guard !isOff else { return }
    compare(now.nanoseconds &- Int64(sent) &* 1_000_000)
    if now &- newest > Self.longestWait {
      // It may have waited for an acknowledgement.
      if case .running = trial { fail() }
      isEven = false
      expectNothing()
    }
    newest = now
    if now &- began >= Self.slice {
      if isEven { expect(min(smallest, bytes)) } else { expectNothing() }
      (began, smallest, isEven, headers) = (now, bytes, true, 0)
      return
    }
    smallest = min(smallest, bytes)
    // At once, so that the next frame of this size is not late.
    if let known = expected { expected = min(known, bytes) }
  }

  /// Audio came. Before the first of it nothing was collected that a frame could wait for, so it is tried again.
  mutating func sawAudio() {
    guard !hasAudio else { return }
    hasAudio = true
    forget()
  }

  /// Whether anything is collected: frames come evenly, and the sender waits for no acknowledgement.
  var mayCollect: Bool { !isOff && expected != nil }

  /// A header came without any byte behind it. Some senders write it by itself, as ffmpeg does. Their system may then send
  /// the rest only after an acknowledgement, so the header has to be read at once.
  mutating func sawHeaderAlone() {
    headers += 1
    if headers >= Self.headersAlone { isOff = true }
  }

  /// Nothing is expected before the frames have come evenly for a slice.
  mutating func forget() {
    (began, newest, smallest, isEven) = (.zero, .zero, .max, false)
    expectNothing()
  }

  private mutating func expectNothing() {
    // Only where there is some, since a list has memory of its own.
    if !delays.isEmpty { delays = [] }
    (expected, trial) = (nil, .none)
  }

  private mutating func expect(_ bytes: Int) {
    if case .none = trial {
      guard delays.count == Self.compared else { return }
      trial = .running(usual: Self.median(delays))
      delays = []
    }
    expected = bytes
  }

  private mutating func compare(_ delay: Int64) {
    switch trial {
    case .none:
      if delays.count == Self.compared { delays.removeFirst() }
      delays.append(delay)
    case .running(let usual):
      delays.append(delay)
      guard delays.count == Self.compared else { return }
      guard Self.median(delays) &- usual > Self.longestDelay else {
        (trial, delays, failures) = (.passed, [], 0)
        return
      }
      fail()
    case .passed: break
    }
  }

  private mutating func fail() {
    failures += 1
    isOff = failures >= Self.tries
    forget()
  }

  /// Of a list that is not empty. Key frames, which take longer, are few.
  private static func median(_ values: [Int64]) -> Int64 { values.sorted()[values.count / 2] }

  /// Bytes to collect where no message has begun. 1: none.
  func bytes(now: MonotonicTime) -> Int {
    guard !isOff, let expected, now &- newest <= Self.longestWait else { return 1 }
    // Half of it: the next frame may be smaller than all before.
    let bytes = min(expected / 2, Self.most)
    return bytes < Self.least ? 1 : bytes
  }
}
