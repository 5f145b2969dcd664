internal import NIOCore

/// Requests that were sent ahead. The first one of a read is answered at once, further ones as far as the turn of the loop has room.
extension HTTP1Connection: LoopTurns.Member {
  /// Whether there is room for another request in this turn. If not, it waits for a later one.
  func goesOn() -> Bool {
    guard !awaitsTurn else { return false }
    if loop.requests.take() { return true }
    awaitsTurn = true
    loop.requests.wait(self, of: peer.host)
    return false
  }

  /// Whether NIO may read now. If not, the read is made up for later.
  func mayRead() -> Bool {
    switch phase {
    case .lingering: return true
    case .receiving where !awaitsTurn, .arriving where takesParts && !awaitsTurn: return true
    // Stopping to read costs two system calls per request, and would hide that the client closed. A client that sends more
    // before its response is not read further.
    case .waiting where waiting.isEmpty && !awaitsTurn, .arriving where waiting.isEmpty && !awaitsTurn: return true
    case .receiving, .arriving, .waiting, .sending, .live, .closed:
      isReadHeldBack = true
      return false
    }
  }

  func takeTurn() {
    awaitsTurn = false
    if unread.readableBytes > 0 {
      receive(ByteBuffer())
      readDidComplete()
    }
    takeParts()
    readOn()
  }

  /// Makes up for a read that was held back.
  private func readOn() {
    guard isReadHeldBack, mayRead() else { return }
    isReadHeldBack = false
    context.read()
  }
}
