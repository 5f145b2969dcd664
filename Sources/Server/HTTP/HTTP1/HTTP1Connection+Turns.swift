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
