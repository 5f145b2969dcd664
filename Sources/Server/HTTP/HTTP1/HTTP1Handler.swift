internal import NIOCore

/// The last handler in NIO's pipeline. Passes bytes, errors and the end of input to `HTTP1Connection`, and asks it whether NIO
/// may read.
final class HTTP1Handler: ChannelInboundHandler, ChannelOutboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundIn = Never

  private let services: HTTPServices
  private let loop: LoopContext
  private let peer: HTTPPeer
  private var connection: HTTP1Connection?

  init(services: HTTPServices, loop: LoopContext, peer: HTTPPeer) {
    self.services = services
    self.loop = loop
    self.peer = peer
  }

  func handlerAdded(context: ChannelHandlerContext) {
    let operations = context.pipeline.syncOperations
    // Looked up once, since that costs more than a write. It is used only while the channel is active; NIO deactivates the
    // channel in the same step in which it closes the socket.
    let socket = try? operations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
      PlainSocket(descriptor: $0)
    }
    // What it takes over TLS is known only when it is encrypted.
    if peer.isTLS { socket?.limitUnsent(SocketWriter.secureUnsentBytes) }
    let writer = SocketWriter(
      context: context, socket: peer.isTLS ? nil : socket, loop: loop, pools: services.pools, address: peer.host,
      isTight: { [limiter = services.limiter] in limiter.isMemoryTight })
    let connection = HTTP1Connection(services: services, loop: loop, writer: writer, context: context, peer: peer)
    writer.delegate = connection
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
    if let event = event as? ChannelEvent, event == .inputClosed {
      connection?.inputDidClose()
    } else {
      context.fireUserInboundEventTriggered(event)
    }
  }

  func read(context: ChannelHandlerContext) {
    if connection?.mayRead() ?? true { context.read() }
  }
}
