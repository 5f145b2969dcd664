internal import NIOCore
internal import Storage

/// The unsent bytes of one stream, and the client's window for it. `HTTP2Sender` takes from it.
final class HTTP2Outbox {
  /// Called by the sender.
  protocol Owner: AnyObject {
    /// The end of the stream was put into a frame.
    func outboxDidEnd()
    /// The end of the stream is on the socket.
    func outboxDidDrain()
    func outboxDidFail(_ reason: String)
  }

  /// The state of the stream in the sender's round.
  enum Turn {
    /// Nothing to send, a closed window, or a read from disk under way.
    case none
    /// A read for another stream comes first.
    case waitsToRead
    case waiting
    /// The window of the connection is closed.
    case starved
  }

  let id: UInt32
  weak var owner: (any Owner)?
  var queue = PieceQueue()
  /// Bytes accepted and not yet on the socket.
  var backlog = 0
  /// Bytes that the client allows; can be negative.
  var window: Int
  var turn = Turn.none
  var isReading = false
  /// Bytes of the sender's memory for what is being read, or was read and is not in frames yet.
  var room = 0
  /// Bytes of `SendingPools.responses` for what was made for this client alone, and how many are put into frames until it is gone.
  var (claimed, claimedUntil) = (0, 0)
  /// Nothing more is added.
  private(set) var ends = false
  private(set) var isClosed = false
  /// The tick in which the client last took enough bytes, or in which the wait for it began.
  private var progressTick = 0
  private var taken = 0

  init(id: UInt32, window: Int) {
    self.id = id
    self.window = window
  }

  func append(_ pieces: [BodyPiece], at tick: Int) {
    if backlog == 0 { progressTick = tick }
    for piece in pieces where piece.length > 0 {
      backlog &+= piece.length
      queue.append(piece)
    }
  }

  func end() { ends = true }

  func close() {
    isClosed = true
    owner = nil
    queue.removeAll()
  }

  /// `count` bytes are on the socket. As in HTTP/1.1, a few bytes are no progress.
  func didSend(_ count: Int, at tick: Int) {
    backlog &-= count
    taken &+= count
    if taken >= SocketWriter.wakeBytes || backlog == 0 {
      taken = 0
      progressTick = tick
    }
  }

  /// Whether a closed window, not a disk or other streams, has delayed the bytes for `ticks`.
  func isStalled(for ticks: Int, at tick: Int) -> Bool {
    guard backlog > 0, !isReading, tick &- progressTick >= ticks else { return false }
    return turn == .starved || (turn == .none && !queue.isEmpty && window <= 0)
  }
}
