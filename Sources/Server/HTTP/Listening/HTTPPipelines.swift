internal import NIOCore
internal import NIOHTTP2

/// The handlers of a connection for each version of HTTP.
struct HTTPPipelines {
  /// The reset streams per connection whose late frames are tolerated. A late frame on another stream ends the connection.
  private static let resetStreams = 128

  let services: HTTPServices
  let loop: LoopContext
  let peer: HTTPPeer

  /// HTTP/1.1 and 1.0.
  var http1: [any ChannelHandler] { [HTTP1Handler(services: services, loop: loop, peer: peer)] }

  /// Adds the handlers of HTTP/2. NIO limits what a client may send: resets, stream errors and control frames per 30 seconds,
  /// empty DATA frames, CONTINUATION frames and glitches.
  func addHTTP2(
    to pipeline: ChannelPipeline.SynchronousOperations, after handler: any ChannelHandler
  ) throws {
    let limits = services.limits
    var configuration = NIOHTTP2Handler.ConnectionConfiguration()
    configuration.initialSettings = [
      // The limit that NIO enforces; the client is told a lower one.
      HTTP2Setting(parameter: .maxConcurrentStreams, value: limits.streams + limits.refusedStreams),
      // Up to twice the limit is read, so that the client gets a 431 instead of a closed connection.
      HTTP2Setting(parameter: .maxHeaderListSize, value: 2 * limits.headerBytes),
    ]
    configuration.maximumRecentlyResetStreams = Self.resetStreams
    let settings = HTTP2SettingsHandler(streams: limits.streams)
    try pipeline.addHandler(settings, position: .after(handler))
    let frames = HTTP2FrameObserver()
    try pipeline.addHandlers(
      [
        NIOHTTP2Handler(mode: .server, frameDelegate: frames, connectionConfiguration: configuration),
        HTTP2Handler(services: services, loop: loop, peer: peer, frames: frames),
      ], position: .after(settings))
  }
}
