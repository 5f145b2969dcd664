internal import Glibc
internal import NIOCore
internal import Synchronization

/// Counts descriptors out at admission, before they are opened. A stream that cannot open one ends, and libdispatch ends the
/// whole process. Streams come before viewers: viewers are let go where a stream needs their descriptors.
package final class DescriptorBudget: Sendable {
  /// What a stream takes: its publisher's socket and its memory.
  package static let perStream = 2
  /// What each of its recordings, its folder of segments, and each worker takes on top.
  package static let perSink = 3

  /// Kept for the server itself: listeners, event loops, the log, databases, thumbnails, files that are looked at. Refused
  /// viewers are answered on these, too. Of many processors each has an event loop (three descriptors) and a thread that looks
  /// at files (two at a time).
  private static let base = max(128, 64 + 5 * System.coreCount)
  /// Kept from viewers, for streams that are still to come and for the rest, where there are enough.
  private static let forStreams = 256
  /// One in so many is always kept for viewers. Files that are read for them can be as many.
  private static let viewersShare = 8

  /// Descriptors that the process may have open (`ulimit -n`).
  package let limit: Int
  private let state = Mutex(State())
  /// Rings when something is given back.
  private let bell = Bell()

  /// What a file is open for.
  package enum FileUse: Sendable {
    /// A recording that somebody reads.
    case reading
    /// A recording that is over, for viewers who go back. Half of the files can be.
    case rewinding
  }

  private struct State {
    var viewers = 0
    var streams = 0
    /// Of streams and publications that are over and whose files the disk has not closed yet.
    var closing = 0
    /// Files that are read for viewers, and those of them that are kept for rewinding.
    var files = 0
    var rewinding = 0
    /// Viewers that were asked to go and have not gone yet.
    var leaving = 0
    /// Lets the newest viewers go, so many.
    var shed: (@Sendable (Int) -> Void)?

    /// What is handed out.
    var sum: Int { viewers + streams + closing + files }
  }

  /// Never refuses.
  package static let unlimited = DescriptorBudget(limit: .max / 4)

  package init(limit: Int) {
    self.limit = limit
  }

  /// Of this process.
  package convenience init() {
    var limit = rlimit()
    let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
    self.init(limit: isKnown ? Int(clamping: min(limit.rlim_cur, 1 << 40)) : 1024)
  }

  /// What there is to hand out.
  private var all: Int { max(2, limit - min(Self.base, limit / 4) - strangers) }

  /// Connections that viewers can have while streams take no more than what is kept for them.
  package var viewers: Int { max(1, limit - min(Self.forStreams, limit / 2)) }

  /// What streams can have in all.
  package var streams: Int { all - max(1, all / Self.viewersShare) }

  /// What streams that are still to come can have.
  var roomForStreams: Int { state.withLock { streams - $0.streams - $0.closing } }

  /// Files that can be read for viewers at a time.
  package var files: Int { max(1, all / Self.viewersShare) }

  /// Connections that have not published yet, at a time.
  package var strangers: Int { max(4, min(8192, limit / 16)) }

  /// What is handed out at the moment.
  package var taken: (viewers: Int, streams: Int) { state.withLock { ($0.viewers, $0.streams) } }

  /// Files that are open for viewers at the moment.
  package var openFiles: Int { state.withLock { $0.files } }

  /// How to let viewers go.
  package func onShortage(_ shed: @escaping @Sendable (_ count: Int) -> Void) {
    state.withLock { $0.shed = shed }
  }

  /// A viewer's connection; false where there is none left for it.
  package func takeViewer() -> Bool {
    state.withLock { state in
      guard state.viewers + state.files < viewers, state.sum < all else { return false }
      state.viewers += 1
      return true
    }
  }

  package func giveBackViewer() {
    state.withLock { state in
      state.viewers -= 1
      state.leaving = max(0, state.leaving - 1)
    }
    bell.ring()
  }

  /// A file that is read for viewers; false where there is no room for it. Nobody is let go for it.
  package func takeFile(_ use: FileUse) -> Bool {
    state.withLock { state in
      guard state.files < files, state.sum < all else { return false }
      switch use {
      case .reading: guard state.viewers + state.files < viewers else { return false }
      case .rewinding: guard state.rewinding < max(1, files / 2) else { return false }
      }
      Self.count(1, use, &state)
      return true
    }
  }

  /// A file that is open already.
  package func noteFile(_ use: FileUse) {
    state.withLock { Self.count(1, use, &$0) }
  }

  package func giveBackFile(_ use: FileUse) {
    state.withLock { Self.count(-1, use, &$0) }
    bell.ring()
  }

  private static func count(_ change: Int, _ use: FileUse, _ state: inout State) {
    state.files += change
    if case .rewinding = use { state.rewinding += change }
  }

  /// Descriptors of a stream; false where there are not so many, even without viewers. Some may still be those of viewers that
  /// were asked to go: nothing is opened before `areFree`.
  package func takeStream(_ count: Int) -> Bool {
    let (isTaken, missing, shed) = state.withLock { state in
      guard count <= streams - state.streams - state.closing else { return (false, 0, state.shed) }
      state.streams += count
      let missing = max(0, state.sum - state.leaving - all)
      state.leaving += missing
      return (true, missing, state.shed)
    }
    if missing > 0 { shed?(missing) }
    return isTaken
  }

  package func giveBackStream(_ count: Int) {
    state.withLock { $0.streams -= count }
    bell.ring()
  }

  /// So many descriptors are open still of streams that have given theirs back.
  package func setClosing(_ count: Int) {
    state.withLock { $0.closing = count }
    bell.ring()
  }

  /// Waits until the viewers have gone that were asked to; false where they have not in time.
  package func areFree(patience: Duration = .seconds(1)) async -> Bool {
    let free = bell.wait(patience: TimeAmount(patience)) { self.state.withLock { $0.sum <= self.all } }
    let areFree = (try? await free.get()) ?? false
    // Whoever comes next asks anew.
    if !areFree { state.withLock { $0.leaving = 0 } }
    return areFree
  }
}
