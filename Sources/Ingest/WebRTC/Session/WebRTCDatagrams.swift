internal import NIOCore

/// The UDP socket of a listener.
final class WebRTCDatagrams: ChannelInboundHandler {
  typealias InboundIn = AddressedEnvelope<ByteBuffer>

  private let hub: WebRTCHub
  private var outlet: DatagramOutlet?

  init(_ hub: WebRTCHub) { self.hub = hub }

  func channelActive(context: ChannelHandlerContext) {
    outlet = try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
      DatagramOutlet($0)
    }
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    outlet?.close()
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let envelope = unwrapInboundIn(data)
    guard let path = WebRTCPath(envelope.remoteAddress, isDatagram: true, context.channel, outlet) else { return }
    _ = hub.receive(envelope.data, on: path)
  }

  /// An ICMP message about some peer. The socket goes on.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {}
}
