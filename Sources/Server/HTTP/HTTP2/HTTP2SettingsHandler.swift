internal import NIOCore

/// Allows a client that has not read our SETTINGS to open more streams than the limit without losing its connection.
/// `HTTP2Connection` refuses each of them separately (RFC 9113 §5.1.2), and the client may retry.
///
/// NIO ends a connection with more streams than allowed: 100, until the client acknowledges another number, then that number.
/// NIO is thus given a higher number than the client (`HTTPLimits.streams` and `refusedStreams`), and an acknowledgement before
/// the client has read the settings. This is valid while all our settings allow more than the defaults (RFC 9113 §6.5.2):
/// NIO would enforce a smaller window, frame or header table on a client that does not know of it.
///
/// Placed between TLS and NIO's handler before that writes; removed when the client has acknowledged.
final class HTTP2SettingsHandler: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = IOData
  typealias OutboundOut = IOData

  private let streams: Int
  private var settings = HTTP2FirstSettings()
  private var hasAnnounced = false

  /// `streams` is the number that the client may open.
  init(streams: Int) {
    self.streams = streams
  }

  /// NIO's first write contains its SETTINGS.
  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard !hasAnnounced, case .byteBuffer(var frame) = Self.unwrapOutboundIn(data) else {
      return context.write(data, promise: promise)
    }
    hasAnnounced = true
    HTTP2FirstSettings.announce(streams, in: &frame)
    context.write(Self.wrapOutboundOut(.byteBuffer(frame)), promise: promise)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    for piece in settings.receive(Self.unwrapInboundIn(data)) { context.fireChannelRead(Self.wrapInboundOut(piece)) }
    if settings.isOver { context.pipeline.syncOperations.removeHandler(context: context, promise: nil) }
  }
}
