internal import Logging
internal import NIOCore
internal import NIOTLS

/// Waits for the end of the TLS handshake, then gives the pipeline the handlers of the protocol that was agreed on (ALPN,
/// RFC 7301): HTTP/2 where the client knows it, HTTP/1.1 for everybody else.
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
        // At once, so that what follows in the same read finds them in place.
        if negotiated == "h2" {
          try pipelines.addHTTP2(to: pipeline, after: self)
        } else {
          try pipeline.addHandlers(pipelines.http1, position: .after(self))
        }
        context.fireUserInboundEventTriggered(event)
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
      } catch {
        context.close(promise: nil)
      }
    } else {
      context.fireUserInboundEventTriggered(event)
    }
  }

  /// No TLS, or no TLS that we speak.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    pipelines.services.logger.debug(
      "TLS handshake failed", metadata: ["peer": "\(pipelines.peer.address)", "error": "\(error)"])
    context.close(promise: nil)
  }

  func tick() {
    if pipelines.loop.now &- since >= pipelines.loop.ticks(pipelines.services.limits.headerTime) { close() }
  }

  func stop() { close() }

  func close() { context?.close(promise: nil) }
}
