internal import NIOCore
internal import NIOHTTP2

/// The handlers of a connection for each version of HTTP.
struct HTTPPipelines {
  /// Of the streams of a connection that were reset, those whose frames may still be under way: later ones on others end it.
  private static let resetStreams = 128

  let services: HTTPServices
  let loop: LoopContext
  let peer: HTTPPeer

  /// HTTP/1.1 and 1.0.
  var http1: [any ChannelHandler] { [HTTP1Handler(services: services, loop: loop, peer: peer)] }

  /// Adds those of HTTP/2. NIO's limits on what a peer may send are in force: resets, stream errors and control frames in 30
  /// seconds, empty DATA frames, CONTINUATION frames and glitches.
  func addHTTP2(
    to pipeline: ChannelPipeline.SynchronousOperations, after handler: any ChannelHandler
  ) throws {
    let limits = services.limits
    var configuration = NIOHTTP2Handler.ConnectionConfiguration()
    configuration.initialSettings = [
      // NIO's bound; the peer hears of fewer.
      HTTP2Setting(parameter: .maxConcurrentStreams, value: limits.streams + limits.refusedStreams),
      // Up to twice of what is taken is read, so that the peer hears 431 instead of losing the connection.
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
