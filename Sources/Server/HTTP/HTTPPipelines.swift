internal import NIOCore
internal import NIOHTTP2

/// The handlers of a connection for each version of HTTP.
struct HTTPPipelines {
  let services: HTTPServices
  let loop: LoopContext
  let peer: HTTPPeer

  /// HTTP/1.1 and 1.0.
  var http1: [any ChannelHandler] { [HTTP1Handler(services: services, loop: loop, peer: peer)] }

  /// HTTP/2. NIO's limits on what a peer may send are in force: resets, stream errors and control frames in 30 seconds,
  /// empty DATA frames, CONTINUATION frames and glitches.
  var http2: [any ChannelHandler] {
    var configuration = NIOHTTP2Handler.ConnectionConfiguration()
    configuration.initialSettings = [
      HTTP2Setting(parameter: .maxConcurrentStreams, value: services.limits.streams),
      // Up to twice of what is taken is read, so that the peer hears 431 instead of losing the connection.
      HTTP2Setting(parameter: .maxHeaderListSize, value: 2 * services.limits.headerBytes),
    ]
    let frames = HTTP2FrameObserver()
    return [
      NIOHTTP2Handler(mode: .server, frameDelegate: frames, connectionConfiguration: configuration),
      HTTP2Handler(services: services, loop: loop, peer: peer, frames: frames),
    ]
  }
}
