internal import NIOCore

/// The handlers of a connection for each version of HTTP.
struct HTTPPipelines {
  let services: HTTPServices
  let loop: LoopContext
  let peer: HTTPPeer

  /// HTTP/1.1 and 1.0.
  var http1: [any ChannelHandler] { [HTTP1Handler(services: services, loop: loop, peer: peer)] }

  var http2: [any ChannelHandler] { [HTTP2Handler(services: services, loop: loop, peer: peer)] }
}
