package import NIOCore

/// Reads a trusted proxy's header, then adds the handlers for the client's connection. A connection without a header is
/// the proxy's own. Closes the connection if no complete header comes within `patience`, or if the header is invalid.
package final class ProxyHeaderHandler: ChannelInboundHandler, RemovableChannelHandler {
  package typealias InboundIn = ByteBuffer
  package typealias InboundOut = ByteBuffer

  private let patience: TimeAmount
  /// Adds the handlers. Nil stands for the proxy itself. Throws if the connection is refused.
  private let ready: (any Channel, SocketAddress?) throws -> Void
  private var bytes = ByteBuffer()
  private var timer: Scheduled<Void>?

  package init(patience: TimeAmount, ready: @escaping (any Channel, SocketAddress?) throws -> Void) {
    self.patience = patience
    self.ready = ready
  }

  package func handlerAdded(context: ChannelHandlerContext) {
    let channel = context.channel
    timer = context.eventLoop.scheduleTask(in: patience) { channel.close(promise: nil) }
  }

  package func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

  package func channelInactive(context: ChannelHandlerContext) {
    timer?.cancel()
    context.fireChannelInactive()
  }

  package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
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
