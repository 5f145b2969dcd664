internal import NIOCore

/// Lets a peer that has not read our SETTINGS yet open more streams than there may be, without losing its connection:
/// `HTTP2Connection` refuses each of them by itself (RFC 9113 §5.1.2), and the peer may ask again.
///
/// NIO ends a connection with more streams than it knows of as allowed: 100, until the peer acknowledges another number, and
/// that number then. So NIO is given a higher one than the peer (`HTTPLimits.streams` and `refusedStreams`), and its
/// acknowledgement before the peer has read it. That is audio while all settings of ours allow more than what holds without
/// them (RFC 9113 §6.5.2): a smaller window, frame or header table would be held against a peer that cannot know of it.
///
/// Stands between TLS and NIO's handler, and has to be there before that one writes; leaves when the peer has acknowledged.
final class HTTP2SettingsHandler: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = IOData
  typealias OutboundOut = IOData

  private let streams: Int
  private var settings = HTTP2FirstSettings()
  private var hasAnnounced = false

  /// `streams` is how many the peer hears that it may open.
  init(streams: Int) {
    self.streams = streams
  }

  /// The first that NIO writes are its SETTINGS.
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
