internal import Base
internal import FMP4
internal import Glibc
internal import LibAV
internal import Synchronization

/// A frame on its way to the encoder. It has one owner at a time.
struct QueuedFrame: @unchecked Sendable {
  let image: VideoFrame
  let time: MonotonicTime
  let rate: FrameRate
  let rotation: Rotation
  let encoding: VideoEncoding
}

/// A short queue between the camera's thread and the encoder's. If the encoder is too slow, frames that find no room
/// are dropped, evenly, and counted.
final class FrameQueue: Sendable {
  enum Item: Sendable {
    case frame(QueuedFrame)
    /// The encoder must output what it holds, because frames that bypass it follow.
    case flush
  }

  private struct State {
    var items: [Item] = []
    var isClosed = false
    var dropped: Int64 = 0
    /// When the encoder took its present item. Nil if it has none.
    var busySince: MonotonicTime?
    /// Number of the latest consumer.
    var turn = 0
  }

  /// Room for a burst after a short delay. More would add latency.
  static let limit = 3

  private let state = Mutex(State())
  private let signal = CountingSemaphore()
  private let clock: SteadyClock

  init(clock: SteadyClock) { self.clock = clock }

  /// Number of dropped frames.
  var dropped: Int64 { state.withLock { $0.dropped } }

  /// True if there was room for the frame.
  func push(_ frame: QueuedFrame) -> Bool {
    let isTaken = state.withLock { state in
      guard state.items.count < Self.limit, !state.isClosed else {
        state.dropped += 1
        return false
      }
      state.items.append(.frame(frame))
      return true
    }
    if isTaken { signal.post() }
    return isTaken
  }

  /// Asks the encoder to output everything that it holds.
  func flush() {
    state.withLock { $0.items.append(.flush) }
    signal.post()
  }

  /// Makes a new consumer. The one before gets nothing more, even if it is waiting.
  func takeOver() -> Turn {
    let turn = state.withLock { state in
      state.turn += 1
      state.busySince = nil
      return Turn(number: state.turn)
    }
    signal.post()
    return turn
  }

  /// Waits for the next item. Nil once the queue is closed and empty, or another consumer has taken over. The call also
  /// ends the work on the last item.
  func pop(_ turn: Turn) -> Item? {
    state.withLock { if $0.turn == turn.number { $0.busySince = nil } }
    while true {
      let (item, isOver) = state.withLock { state -> (Item?, Bool) in
        guard state.turn == turn.number else { return (nil, true) }
        guard !state.items.isEmpty else { return (nil, state.isClosed) }
        state.busySince = clock.monotonic()
        return (state.items.removeFirst(), false)
      }
      // The signal may have been meant for another waiting consumer.
      if isOver { signal.post() }
      if item != nil || isOver { return item }
      signal.wait()
    }
  }

  /// The right to consume items until another consumer takes over.
  struct Turn: Sendable {
    fileprivate let number: Int
  }

  /// Nanoseconds since the present item was taken. Nil if there is none.
  var busyFor: Int64? {
    state.withLock { $0.busySince }.map { clock.monotonic() &- $0 }
  }

  /// Whether nothing waits and nothing is being encoded.
  var isIdle: Bool { state.withLock { $0.items.isEmpty && $0.busySince == nil } }

  /// Closes the queue for new frames.
  func close() {
    state.withLock { $0.isClosed = true }
    signal.post()
  }
}
