internal import Glibc
internal import NIOCore
internal import Synchronization

/// Limits the file descriptors of the process. They are counted at admission, before they are opened: a stream that cannot
/// open one ends, and libdispatch ends the whole process. Streams have priority: the connections of viewers are closed when
/// a stream needs their descriptors.
package final class DescriptorBudget: Sendable {
  /// Descriptors of one stream: the socket of its publisher and its memory file.
  package static let perStream = 2
  /// Descriptors of each recording, of the segment folder and of each worker, on top of `perStream`.
  package static let perSink = 3

  /// Descriptors of one look for the name of a host: its resolver asks over both families of addresses.
  package static let perLook = 2

  /// Reserved for the server: listeners, event loops, the log, databases, thumbnails, file lookups, and responses to refused
  /// viewers. Each processor has an event loop (three descriptors) and a thread that looks at files (two at a time).
  private static let base = max(128, 64 + 5 * System.coreCount)
  /// Reserved for the server in any case, where `connections` would take it.
  private static let least = 20
  /// Withheld from viewers, for new streams and for other uses, where the limit is large enough.
  private static let forStreams = 256
  /// One descriptor in this many is always reserved for viewers. As many can be files that are open for viewers, and looks for
  /// names.
  private static let viewersShare = 8

  /// File descriptors that the process may have open (`ulimit -n`).
  package let limit: Int
  private let state = Mutex(State())
  /// Rings when descriptors are given back.
  private let bell = Bell()

  /// The purpose of an open file.
  package enum FileUse: Sendable {
    /// A recording that a client reads.
    case reading
    /// A finished recording, for viewers who seek back. At most half of the files.
    case rewinding
  }

  private struct State {
    var viewers = 0
    var streams = 0
    /// Descriptors of streams and publications that have ended, but whose files the disk has not closed yet.
    var closing = 0
    /// Files that are open for viewers, and how many of these are for rewinding.
    var files = 0
    var rewinding = 0
    /// Descriptors of looks for names.
    var looks = 0
    /// Viewers that were told to leave and are still connected.
    var leaving = 0
    /// Closes the connections of this many viewers, newest first.
    var shed: (@Sendable (Int) -> Void)?

    /// All descriptors in use.
    var sum: Int { viewers + streams + closing + files + looks }
  }

  /// A budget without a limit.
  package static let unlimited = DescriptorBudget(limit: .max / 4)

  package init(limit: Int) {
    self.limit = limit
  }

  /// The budget of this process, from `RLIMIT_NOFILE`.
  package convenience init() {
    var limit = rlimit()
    let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
    self.init(limit: isKnown ? Int(clamping: min(limit.rlim_cur, 1 << 40)) : 1024)
  }

  /// All descriptors that can be handed out.
  private var all: Int { max(2, limit - min(Self.base, limit / 4) - unauthenticated) }

  /// The most connections of viewers, while streams use no more than their reserve.
  package var viewers: Int { max(1, limit - min(Self.forStreams, limit / 2)) }

  /// The most connections at once, with those that only learn that the server is full, and those that are being closed. Of few
  /// descriptors some stay with the server itself: an idle one has 18 open, and each event loop may accept some before it
  /// counts them.
  package var connections: Int { max(2, limit - max(Self.least, min(Self.base, limit / 4))) }

  /// The most descriptors of streams.
  package var streams: Int { all - max(1, all / Self.viewersShare) }

  /// Descriptors that are left for new streams.
  package var roomForStreams: Int { state.withLock { streams - $0.streams - $0.closing } }

  /// The most files that can be open for viewers at a time.
  package var files: Int { max(1, all / Self.viewersShare) }

  /// The most connections at a time that have not published yet.
  package var unauthenticated: Int { max(4, min(8192, limit / 16)) }

  /// Descriptors in use now.
  package var taken: (viewers: Int, streams: Int) { state.withLock { ($0.viewers, $0.streams) } }

  /// Files that are open for viewers now.
  package var openFiles: Int { state.withLock { $0.files } }

  /// Sets the closure that closes the connections of viewers.
  package func onShortage(_ shed: @escaping @Sendable (_ count: Int) -> Void) {
    state.withLock { $0.shed = shed }
  }

  /// Whether a descriptor is left for a viewer's connection.
  package var hasViewerRoom: Bool { state.withLock { hasViewerRoom($0) } }

  private func hasViewerRoom(_ state: borrowing State) -> Bool {
    state.viewers + state.files < viewers && state.sum < all
  }

  /// Takes the descriptor of a viewer's connection. False when none is left.
  package func takeViewer() -> Bool {
    state.withLock { state in
      guard hasViewerRoom(state) else { return false }
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

  /// Takes the descriptor of a file for viewers. False when none is left. No viewer is disconnected for a file.
  package func takeFile(_ use: FileUse) -> Bool {
    state.withLock { state in
      guard state.files + state.looks < files, state.sum < all else { return false }
      switch use {
      case .reading: guard state.viewers + state.files < viewers else { return false }
      case .rewinding: guard state.rewinding < max(1, files / 2) else { return false }
      }
      Self.count(1, use, &state)
      return true
    }
  }

  /// Counts a file that is already open.
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

  /// Takes the descriptors of a look for a name. False when too few are left. No viewer is disconnected for a look. The files'
  /// share never holds up the first look: publishers may have to wait for it.
  package func takeLook() -> Bool {
    state.withLock { state in
      let isFirst = state.looks == 0
      guard isFirst || state.files + state.looks + Self.perLook <= files, state.sum + Self.perLook <= all else {
        return false
      }
      state.looks += Self.perLook
      return true
    }
  }

  package func giveBackLook() {
    state.withLock { $0.looks -= Self.perLook }
    bell.ring()
  }

  /// Takes descriptors for a stream. False when there are too few, even without viewers. Some may still belong to viewers that
  /// were told to leave: open nothing before `areFree`.
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

  /// Sets the number of descriptors that are still open though their streams have given them back.
  package func setClosing(_ count: Int) {
    state.withLock { $0.closing = count }
    bell.ring()
  }

  /// Waits until the viewers that were told to leave have left. False when they have not within `patience`.
  package func areFree(patience: Duration = .seconds(5)) async -> Bool {
    let free = bell.wait(patience: TimeAmount(patience)) { self.state.withLock { $0.sum <= self.all } }
    let areFree = (try? await free.get()) ?? false
    // The next stream that needs descriptors asks again.
    if !areFree { state.withLock { $0.leaving = 0 } }
    return areFree
  }
}
