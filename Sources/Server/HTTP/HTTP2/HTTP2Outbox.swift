internal import NIOCore
internal import NIOHTTP2
internal import Storage

/// What one stream still has to send, and how much of it the peer allows. `HTTP2Sender` takes from it.
final class HTTP2Outbox {
  /// Called by the sender.
  protocol Owner: AnyObject {
    /// The end of the stream is on the socket.
    func outboxDidDrain()
    func outboxDidFail(_ reason: String)
  }

  /// Where the stream stands in the round of those that send.
  enum Turn {
    /// Nothing to send, or a closed window, or a disk that is being read.
    case none
    case waiting
    /// The connection's window is closed.
    case starved
  }

  let id: HTTP2StreamID
  weak var owner: (any Owner)?
  var queue = PieceQueue()
  /// Bytes accepted and not yet on the socket.
  var backlog = 0
  /// Bytes that the peer lets the stream send beyond those that NIO has; may be negative.
  var window: Int
  /// Bytes that NIO has and has not yet put into a frame.
  var handedOver = 0
  var turn = Turn.none
  var isReading = false
  /// Nothing is added any more.
  private(set) var ends = false
  private(set) var isClosed = false
  /// The tick in which the peer last took enough, or in which it began to be waited for.
  private var progressTick = 0
  private var taken = 0

  init(id: HTTP2StreamID, window: Int) {
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
    handedOver = 0
  }

  /// `count` bytes are on the socket. As on HTTP/1.1, a peer that takes a few at a time has not taken anything yet.
  func didSend(_ count: Int, at tick: Int) {
    backlog &-= count
    taken &+= count
    if taken >= SocketWriter.wakeBytes || backlog == 0 {
      taken = 0
      progressTick = tick
    }
  }

  /// Whether a closed window, and neither a disk nor the other streams, has kept the bytes waiting for `ticks`.
  func isStalled(for ticks: Int, at tick: Int) -> Bool {
    guard backlog > 0, !isReading, tick &- progressTick >= ticks else { return false }
    return turn == .starved || (turn == .none && !queue.isEmpty && window <= 0)
  }
}
