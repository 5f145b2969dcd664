internal import NIOCore

/// The last handler of a connection that speaks HTTP/2, behind TLS. Passes bytes and events to `HTTP2Connection`. There are no
/// channels for streams: a waiting request for a playlist costs only a table entry.
final class HTTP2Handler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let services: HTTPServices
  private let loop: LoopContext
  private let peer: HTTPPeer
  private var connection: HTTP2Connection?

  init(services: HTTPServices, loop: LoopContext, peer: HTTPPeer) {
    self.services = services
    self.loop = loop
    self.peer = peer
  }

  func handlerAdded(context: ChannelHandlerContext) {
    // Unsent bytes in the kernel would delay a playlist of another stream.
    _ = try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
      PlainSocket(descriptor: $0).limitUnsent(HTTP2Sender.unsentBytes)
    }
    let connection = HTTP2Connection(services: services, loop: loop, context: context, peer: peer)
    self.connection = connection
    loop.add(connection)
    connection.begin()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    guard let connection else { return }
    self.connection = nil
    loop.remove(connection)
    connection.channelDidClose()
  }

  func channelInactive(context: ChannelHandlerContext) {
    connection?.channelDidClose()
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    connection?.receive(Self.unwrapInboundIn(data))
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    connection?.readDidComplete()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    connection?.receive(error)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case ChannelEvent.inputClosed? = event as? ChannelEvent {
      connection?.inputDidClose()
    } else {
      context.fireUserInboundEventTriggered(event)
    }
  }
}
