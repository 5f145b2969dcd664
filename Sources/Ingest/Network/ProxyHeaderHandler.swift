internal import NIOCore

/// Reads what a trusted proxy says first on a connection, then makes way for the handlers of whoever is behind it. What has
/// no header is the proxy's own connection. Closes after `patience` of nothing, and where the header is none.
final class ProxyHeaderHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private let patience: TimeAmount
  /// Adds the handlers; nil stands for the proxy itself. Throws where nobody wants the connection.
  private let ready: (any Channel, SocketAddress?) throws -> Void
  private var bytes = ByteBuffer()
  private var timer: Scheduled<Void>?

  init(patience: TimeAmount, ready: @escaping (any Channel, SocketAddress?) throws -> Void) {
    self.patience = patience
    self.ready = ready
  }

  func handlerAdded(context: ChannelHandlerContext) {
    let channel = context.channel
    timer = context.eventLoop.scheduleTask(in: patience) { channel.close(promise: nil) }
  }

  func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

  func channelInactive(context: ChannelHandlerContext) {
    timer?.cancel()
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var more = unwrapInboundIn(data)
    bytes.writeBuffer(&more)
    do {
      switch try ProxyHeader.take(from: &bytes) {
      case .incomplete: return
      case .absent: try ready(context.channel, nil)
      case .from(let address): try ready(context.channel, address)
      }
      timer?.cancel()
      if bytes.readableBytes > 0 {
        context.fireChannelRead(wrapInboundOut(bytes))
        context.fireChannelReadComplete()
      }
      context.pipeline.syncOperations.removeHandler(self, promise: nil)
    } catch {
      context.close(promise: nil)
    }
  }
}
