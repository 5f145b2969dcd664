internal import Logging
internal import NIOCore
internal import NIOTLS

/// Waits for the end of the TLS handshake, then adds the handlers of the negotiated protocol (ALPN, RFC 7301): HTTP/2 if the
/// client supports it, otherwise HTTP/1.1.
final class TLSNegotiation: ChannelInboundHandler, RemovableChannelHandler, HTTPConnection {
  typealias InboundIn = Never

  private let pipelines: HTTPPipelines
  private let since: Int
  private var context: ChannelHandlerContext?
  var peer: HTTPPeer { pipelines.peer }

  init(_ pipelines: HTTPPipelines) {
    self.pipelines = pipelines
    since = pipelines.loop.now
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    pipelines.loop.add(self)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    pipelines.loop.remove(self)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .handshakeCompleted(let negotiated) = event as? TLSUserEvent {
      let pipeline = context.pipeline.syncOperations
      do {
        // At once, so that the rest of the same read finds the handlers in place.
        try pipeline.addHandlers(negotiated == "h2" ? pipelines.http2 : pipelines.http1, position: .after(self))
        context.fireUserInboundEventTriggered(event)
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
      } catch {
        context.close(promise: nil)
      }
    } else {
      context.fireUserInboundEventTriggered(event)
    }
  }

  /// The client does not speak TLS, or no supported version.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    pipelines.services.logger.debug(
      "TLS handshake failed", metadata: ["peer": "\(pipelines.peer.address)", "error": "\(error)"])
    context.close(promise: nil)
  }

  func tick() {
    let loop = pipelines.loop
    if peer.isOver(loop) || loop.now &- since >= loop.ticks(pipelines.services.limits.headerTime) { close() }
  }

  func stop() { close() }

  func close() { context?.close(promise: nil) }

  func closeAtOnce() { context?.channel.closeAtOnce() }
}
