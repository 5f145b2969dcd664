internal import Base
internal import NIOCore

/// A connection by TCP: datagrams with their lengths in front (RFC 4571), for paths that let no UDP through (RFC 6544).
final class WebRTCConnection: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private struct Refused: Error {}

  private let hub: WebRTCHub
  private let path: WebRTCPath
  private let peer: String
  private var received = ByteBuffer()
  private var deadline: Scheduled<Void>?
  /// It belongs to a session.
  private var isKnown = false
  /// It is not the only one of a session, or belongs to none yet.
  private var isCounted = true
  private var isOver = false

  /// Throws if there are too many.
  init(_ hub: WebRTCHub, _ channel: any Channel) throws {
    guard let path = WebRTCPath(channel.remoteAddress, isDatagram: false, channel) else { throw Refused() }
    peer = PeerText.host(of: channel.remoteAddress)
    guard hub.admitConnection(of: peer) else { throw Refused() }
    (self.hub, self.path) = (hub, path)
    deadline = channel.eventLoop.scheduleTask(in: .nanoseconds(WebRTCLimits.unassignedDeadline)) {
      channel.close(promise: nil)
    }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    received.writeImmutableBuffer(unwrapInboundIn(data))
    while !isOver, let length: UInt16 = received.getInteger(at: received.readerIndex) {
      guard length <= WebRTCLimits.datagramBytes else { return close(context) }
      guard received.readableBytes >= 2 + Int(length) else { break }
      received.moveReaderIndex(forwardBy: 2)
      guard let datagram = received.readSlice(length: Int(length)) else { break }
      let session = hub.receive(datagram, on: path)
      // Another connection may have the same remote address, on another one of the machine's.
      if let session, session.holds(path) { know(session) } else if !isKnown { return close(context) }
    }
    if received.readableBytes == 0 { received = ByteBuffer() } else { received.discardReadBytes() }
  }

  private func know(_ session: WebRTCTransport) {
    guard isCounted || !isKnown else { return }
    isKnown = true
    deadline?.cancel()
    // A stream's descriptors are those of one connection. A viewer has one from when it is connected.
    if session.purpose == .publishing || session.isConnected, session.connections <= 1 { release() }
  }

  private func release() {
    guard isCounted else { return }
    isCounted = false
    hub.releaseConnection(of: peer)
  }

  private func close(_ context: ChannelHandlerContext) {
    isOver = true
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    isOver = true
    deadline?.cancel()
    release()
    hub.lose(path)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { close(context) }
}
