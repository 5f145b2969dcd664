internal import Glibc
internal import Synchronization

/// Counts descriptors out at admission, before they are opened. A stream that cannot open one ends, and libdispatch ends the
/// whole process. Streams come before viewers: viewers are let go where a stream needs their descriptors.
final class DescriptorBudget: Sendable {
  /// What a stream takes: its publisher's socket and its memory.
  static let perStream = 2
  /// What each of its recordings, its folder of segments, and each worker takes on top.
  static let perSink = 3

  /// Kept for the server itself: listeners, event loops, the log, databases, thumbnails, files that are read. Refused viewers
  /// are answered on these, too.
  private static let base = 128
  /// Kept from viewers, for streams that are still to come and for the rest, where there are enough.
  private static let forStreams = 256
  /// One in so many is always kept for viewers.
  private static let viewersShare = 8

  /// Descriptors that the process may have open (`ulimit -n`).
  let limit: Int
  private let state = Mutex(State())

  private struct State {
    var viewers = 0
    var streams = 0
    /// Viewers that were asked to go and have not gone yet.
    var leaving = 0
    /// Lets the newest viewers go, so many.
    var shed: (@Sendable (Int) -> Void)?
  }

  /// Never refuses.
  static let unlimited = DescriptorBudget(limit: .max / 4)

  init(limit: Int) {
    self.limit = limit
  }

  /// Of this process.
  convenience init() {
    var limit = rlimit()
    let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
    self.init(limit: isKnown ? Int(clamping: min(limit.rlim_cur, 1 << 40)) : 1024)
  }

  /// What there is to hand out.
  private var all: Int { max(2, limit - min(Self.base, limit / 4) - strangers) }

  /// Connections that viewers can have while streams take no more than what is kept for them.
  var viewers: Int { max(1, limit - min(Self.forStreams, limit / 2)) }

  /// What streams can have in all.
  var streams: Int { all - max(1, all / Self.viewersShare) }

  /// Connections that have not published yet, at a time.
  var strangers: Int { max(4, min(8192, limit / 16)) }

  /// What is handed out at the moment.
  var taken: (viewers: Int, streams: Int) { state.withLock { ($0.viewers, $0.streams) } }

  /// How to let viewers go.
  func onShortage(_ shed: @escaping @Sendable (_ count: Int) -> Void) {
    state.withLock { $0.shed = shed }
  }

  /// A viewer's connection; false where there is none left for it.
  func takeViewer() -> Bool {
    state.withLock { state in
      guard state.viewers < viewers, state.viewers + state.streams < all else { return false }
      state.viewers += 1
      return true
    }
  }

  func giveBackViewer() {
    state.withLock { state in
      state.viewers -= 1
      state.leaving = max(0, state.leaving - 1)
    }
  }

  /// Descriptors of a stream; false where there are not so many, even without viewers.
  func takeStream(_ count: Int) -> Bool {
    let (isTaken, missing, shed) = state.withLock { state in
      guard state.streams + count <= streams else { return (false, 0, state.shed) }
      state.streams += count
      let missing = max(0, state.viewers - state.leaving + state.streams - all)
      state.leaving += missing
      return (true, missing, state.shed)
    }
    if missing > 0 { shed?(missing) }
    return isTaken
  }

  func giveBackStream(_ count: Int) {
    state.withLock { $0.streams -= count }
  }
}
