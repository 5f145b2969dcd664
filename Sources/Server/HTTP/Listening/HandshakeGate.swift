internal import NIOCore

/// Stands between a socket and TLS until the handshake is over. A client's first bytes cost it nothing and the server a signature:
/// with thousands at once, a turn of the event loop would take as long as all of them. So they wait for a turn (`LoopTurns`), and
/// nothing more is read meanwhile.
final class HandshakeGate: ChannelDuplexHandler, RemovableChannelHandler, LoopTurns.Member {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let turns: LoopTurns
  private let address: String
  private var context: ChannelHandlerContext?
  /// Waits for a turn.
  private var held: ByteBuffer?
  private var isReadHeldBack = false

  /// `address` is that of the client, for counting.
  init(_ turns: LoopTurns, of address: String) {
    (self.turns, self.address) = (turns, address)
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) { (self.context, held) = (nil, nil) }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if held == nil, turns.take() { return context.fireChannelRead(data) }
    var bytes = Self.unwrapInboundIn(data)
    if held == nil {
      held = bytes
      turns.wait(self, of: address)
    } else {
      held?.writeBuffer(&bytes)
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    if held == nil { context.fireChannelReadComplete() }
  }

  func read(context: ChannelHandlerContext) {
    if held == nil { context.read() } else { isReadHeldBack = true }
  }

  func takeTurn() {
    guard let context, let bytes = held.take() else { return }
    // The handshake may end with these bytes, and the gate be removed: what follows goes through the whole pipeline.
    let pipeline = context.pipeline.syncOperations
    context.fireChannelRead(Self.wrapInboundOut(bytes))
    pipeline.fireChannelReadComplete()
    if isReadHeldBack {
      isReadHeldBack = false
      pipeline.read()
    }
  }
}
