internal import NIOCore
internal import NIOHTTP2

/// Where NIO's pipeline meets `HTTP2Connection`: hands frames, events and errors on. Stands last, behind NIO's handler
/// of HTTP/2, which is used without its channels for streams: a waiting playlist costs an entry in a table here.
final class HTTP2Handler: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame

  private let services: HTTPServices
  private let loop: LoopContext
  private let peer: HTTPPeer
  private let frames: HTTP2FrameObserver
  private var connection: HTTP2Connection?

  init(services: HTTPServices, loop: LoopContext, peer: HTTPPeer, frames: HTTP2FrameObserver) {
    self.services = services
    self.loop = loop
    self.peer = peer
    self.frames = frames
  }

  func handlerAdded(context: ChannelHandlerContext) {
    // What the kernel holds goes out before a playlist that another stream asks for.
    _ = try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
      PlainSocket(descriptor: $0).limitUnsent(HTTP2Sender.unsentBytes)
    }
    let connection = HTTP2Connection(services: services, loop: loop, context: context, peer: peer)
    frames.connection = connection
    self.connection = connection
    loop.add(connection)
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
    switch event {
    case let event as StreamClosedEvent: connection?.streamDidClose(event.streamID)
    case let event as NIOHTTP2WindowUpdatedEvent:
      if let size = event.inboundWindowSize { connection?.inboundWindowDidChange(of: event.streamID, to: size) }
    case let event as ChannelEvent where event == .inputClosed: connection?.inputDidClose()
    default: context.fireUserInboundEventTriggered(event)
    }
  }
}
