internal import NIOCore

/// The UDP socket of a listener.
final class WebRTCDatagrams: ChannelInboundHandler {
  typealias InboundIn = AddressedEnvelope<ByteBuffer>

  private let hub: WebRTCHub

  init(_ hub: WebRTCHub) { self.hub = hub }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let envelope = unwrapInboundIn(data)
    guard let path = WebRTCPath(envelope.remoteAddress, isDatagram: true, context.channel) else { return }
    _ = hub.receive(envelope.data, on: path)
  }

  /// An ICMP message about some peer. The socket goes on.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {}
}
