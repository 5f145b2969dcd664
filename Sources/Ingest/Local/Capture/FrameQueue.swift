internal import FMP4
internal import Glibc
internal import Synchronization

/// A picture on its way to the encoder. Handed over whole: whoever holds it is the only one.
struct QueuedFrame: @unchecked Sendable {
  let picture: VideoFrame
  /// Nanoseconds on the monotonic clock.
  let time: Int64
  let rate: FrameRate
  let rotation: Rotation
  let encoding: VideoEncoding
}

/// Between the thread that takes pictures and the one that codes them: a few at most. When the encoder is slower than
/// the camera, a picture that finds no room is left out, which happens evenly, and is counted.
final class FrameQueue: Sendable {
  enum Item: Sendable {
    case picture(QueuedFrame)
    /// The encoder is to give out what it holds, since other pictures follow that it does not see.
    case flush
  }

  private struct State {
    var items: [Item] = []
    var isClosed = false
    var dropped: Int64 = 0
    /// Since when, on the monotonic clock, what was taken last is being coded; nil where nothing is.
    var busySince: Int64?
    /// Whose turn it is: the number of the latest taker.
    var turn = 0
  }

  /// A burst after a hiccup fits in; more would be delay.
  static let limit = 3

  private let state = Mutex(State())
  private let signal = Semaphore()
  private let clock: SteadyClock

  init(clock: SteadyClock) { self.clock = clock }

  /// Pictures that found no room so far.
  var dropped: Int64 { state.withLock { $0.dropped } }

  /// True where the picture was taken.
  func push(_ picture: QueuedFrame) -> Bool {
    let isTaken = state.withLock { state in
      guard state.items.count < Self.limit, !state.isClosed else {
        state.dropped += 1
        return false
      }
      state.items.append(.picture(picture))
      return true
    }
    if isTaken { signal.post() }
    return isTaken
  }

  /// Asks for everything that the encoder holds.
  func flush() {
    state.withLock { $0.items.append(.flush) }
    signal.post()
  }

  /// Somebody else takes what comes from here on; whoever did so before gets nothing more, also where it waits already.
  func takeOver() -> Turn {
    let turn = state.withLock { state in
      state.turn += 1
      state.busySince = nil
      return Turn(number: state.turn)
    }
    signal.post()
    return turn
  }

  /// Waits for the next item; nil once the queue is closed and empty, or once somebody else has taken over. Whoever asks is
  /// done with the last one.
  func pop(_ turn: Turn) -> Item? {
    state.withLock { if $0.turn == turn.number { $0.busySince = nil } }
    while true {
      let (item, isOver) = state.withLock { state -> (Item?, Bool) in
        guard state.turn == turn.number else { return (nil, true) }
        guard !state.items.isEmpty else { return (nil, state.isClosed) }
        state.busySince = clock.monotonicNanoseconds()
        return (state.items.removeFirst(), false)
      }
      // What has woken this one may have been meant for another one that waits.
      if isOver { signal.post() }
      if item != nil || isOver { return item }
      signal.wait()
    }
  }

  /// The right to take what comes, until somebody else takes over.
  struct Turn: Sendable {
    fileprivate let number: Int
  }

  /// Nanoseconds for which the same item has been in work; nil where none is.
  var busyFor: Int64? {
    state.withLock { $0.busySince }.map { clock.monotonicNanoseconds() &- $0 }
  }

  /// Nothing waits, and nothing is being coded.
  var isIdle: Bool { state.withLock { $0.items.isEmpty && $0.busySince == nil } }

  /// No more pictures come.
  func close() {
    state.withLock { $0.isClosed = true }
    signal.post()
  }
}
