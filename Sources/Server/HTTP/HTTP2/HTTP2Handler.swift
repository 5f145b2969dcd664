internal import NIOCore
internal import NIOHTTP2

/// The last handler in NIO's pipeline. Passes frames, events and errors to `HTTP2Connection`. NIO's HTTP/2 handler before it is
/// used without stream channels: a waiting request for a playlist costs only a table entry here.
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
    // Unsent bytes in the kernel would delay a playlist of another stream.
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
