internal import Ingest
internal import Logging
internal import NIOCore
internal import NIOHTTP2

/// An HTTP/2 connection (RFC 9113). NIO parses, checks and limits the client's frames. This class opens streams, each with one
/// request and its response, and ends the connection when it is idle, stalled, faulty or being stopped. `HTTP2Sender` decides
/// what is sent when. Confined to the channel's event loop.
final class HTTP2Connection: HTTPConnection {
  /// Bytes that the client may send before the next WINDOW_UPDATE (RFC 9113 §6.9.2).
  static let inboundWindow = 65_535
  /// A ping that shows whether the client has received a GOAWAY.
  private static let goAwayPing = HTTP2PingData(withInteger: 0x7765_6972)

  let services: HTTPServices
  let loop: LoopContext
  let peer: HTTPPeer
  let sender: HTTP2Sender
  let logsRequests: Bool
  var table = TableReader()
  var lastHead = HTTP2LastHead()
  private let context: ChannelHandlerContext
  private var streams: [HTTP2StreamID: HTTP2Stream] = [:]
  /// The last stream that the client opened, including refused ones.
  private var lastStream: HTTP2StreamID = .rootStream
  private var refusals: TokenBucket
  /// The initial window of a new stream.
  private var streamWindow = 65_535
  /// The tick in which the connection began or its last stream ended.
  private var idleSince: Int
  private var isStopping = false
  private var isClosed = false
  /// NIO has sent an error that ends the connection.
  private var hasFailed = false

  init(services: HTTPServices, loop: LoopContext, context: ChannelHandlerContext, peer: HTTPPeer) {
    self.services = services
    self.loop = loop
    self.context = context
    self.peer = peer
    idleSince = loop.now
    let refusedStreams = Double(services.limits.refusedStreams)
    refusals = TokenBucket(burst: refusedStreams, perSecond: refusedStreams / 60)
    logsRequests = services.logger.logLevel <= .debug
    sender = HTTP2Sender(context: context, loop: loop, pool: services.pool)
    sender.didDrain = { [weak self] in self?.endIfDone() }
  }

  // MARK: Input

  func receive(_ frame: HTTP2Frame) {
    guard !isClosed else { return }
    sender.isHeld = true
    switch frame.payload {
    case .headers(let headers):
      if let stream = streams[frame.streamID] {
        if headers.endStream { stream.end() }
      } else if frame.streamID > lastStream {
        lastStream = frame.streamID
        guard streams.count < services.limits.streams else { return refuse(frame.streamID) }
        let stream = HTTP2Stream(id: frame.streamID, window: streamWindow, connection: self)
        streams[frame.streamID] = stream
        stream.begin(headers.headers, isEnd: headers.endStream)
      }
    case .data(let data):
      guard case .byteBuffer(let bytes) = data.data, let stream = streams[frame.streamID] else { return }
      let bodies = streams.values.reduce(0) { $0 &+ $1.bodyBytes }
      stream.receive(bytes, isEnd: data.endStream, room: services.limits.requestBodyBytes &- bodies)
    case .windowUpdate(let increment):
      if frame.streamID == .rootStream {
        sender.widen(by: increment)
      } else if let stream = streams[frame.streamID] {
        sender.widen(stream.outbox, by: increment)
      }
    case .settings(.settings(let settings)):
      // The last value counts (RFC 9113 §6.5.3).
      guard let window = settings.last(where: { $0.parameter == .initialWindowSize })?.value else { return }
      for stream in streams.values { sender.widen(stream.outbox, by: window &- streamWindow) }
      streamWindow = window
    case .ping(Self.goAwayPing, ack: true):
      if isStopping { goAway(lastStream) }
    default: break
    }
  }

  /// Refuses a stream beyond the limit. It was not processed and may be retried (RFC 9113 §5.1.2, §8.7).
  private func refuse(_ id: HTTP2StreamID) {
    guard !refusals.take(now: .now()) else {
      return sender.write(.rstStream(.refusedStream), on: id)
    }
    services.logger.debug(
      "connection ended", metadata: ["peer": "\(peer.address)", "reason": "too many streams were refused"])
    sender.write(.goAway(lastStreamID: id, errorCode: .enhanceYourCalm, opaqueData: nil), on: .rootStream)
    sender.isHeld = false
    sender.pump()
    close()
  }

  func readDidComplete() {
    sender.isHeld = false
    sender.pump()
    endIfDone()
  }

  /// Reopens the client's window when half of it is used.
  func inboundWindowDidChange(of id: HTTP2StreamID, to size: Int) {
    streams[id]?.inboundWindow = size
    guard !isClosed, size < Self.inboundWindow / 2, id == .rootStream || streams[id]?.isReceiving == true else {
      return
    }
    sender.write(.windowUpdate(windowSizeIncrement: Self.inboundWindow &- size), on: id)
  }

  /// Does so for a stream that takes its body again.
  func reopenWindow(of stream: HTTP2Stream) {
    guard streams[stream.outbox.id] === stream else { return }
    inboundWindowDidChange(of: stream.outbox.id, to: stream.inboundWindow)
  }

  func streamDidClose(_ id: HTTP2StreamID) {
    guard let stream = streams.removeValue(forKey: id) else { return }
    stream.close()
    if streams.isEmpty { idleSince = loop.now }
    endIfDone()
  }

  /// NIO responds to errors of single streams with a reset.
  func receive(_ error: any Error) {
    guard !isClosed else { return }
    let isFatal = hasFailed || !(error is any NIOHTTP2Error)
    services.logger.debug(
      isFatal ? "connection failed" : "stream failed", metadata: ["peer": "\(peer.address)", "error": "\(error)"])
    if isFatal { close() }
  }

  /// The client has closed its sending side; it needs no more responses.
  func inputDidClose() { close() }

  // MARK: What NIO wrote

  func didWrite(_ count: Int, on id: HTTP2StreamID) {
    streams[id]?.outbox.handedOver &-= count
  }

  func didWriteGoAway(_ code: HTTP2ErrorCode) {
    if code != .noError { hasFailed = true }
  }

  // MARK: The end

  /// Resets one stream. It is closed when NIO reports that.
  func reset(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {
    guard !isClosed, streams[stream.outbox.id] === stream else { return }
    sender.write(.rstStream(code), on: stream.outbox.id)
    sender.pump()
  }

  /// Sends a GOAWAY. Streams that the client opens before it receives that are still served (RFC 9113 §6.8). The connection ends
  /// with the last stream.
  func stop() {
    guard !isStopping, !isClosed else { return }
    isStopping = true
    if !streams.isEmpty {
      goAway(.maxID)
      sender.write(.ping(Self.goAwayPing, ack: false), on: .rootStream)
      sender.pump()
    }
    endIfDone()
  }

  private func goAway(_ last: HTTP2StreamID) {
    sender.write(.goAway(lastStreamID: last, errorCode: .noError, opaqueData: nil), on: .rootStream)
  }

  private func endIfDone() {
    guard isStopping, !isClosed, !sender.isHeld, streams.isEmpty, sender.inFlight == 0 else { return }
    goAway(lastStream)
    sender.pump()
    close()
  }

  func close() {
    guard !isClosed else { return }
    channelDidClose()
    context.close(promise: nil)
  }

  func channelDidClose() {
    guard !isClosed else { return }
    isClosed = true
    let open = streams
    streams.removeAll()
    for stream in open.values { stream.close() }
  }

  // MARK: Deadlines

  func tick() {
    guard !isClosed else { return }
    let limits = services.limits
    if sender.isStalled(for: loop.ticks(limits.writeStall)) {
      services.logger.debug(
        "viewer disconnected", metadata: ["peer": "\(peer.address)", "reason": "it read nothing for too long"])
      close()
    } else if streams.isEmpty {
      if loop.now &- idleSince >= loop.ticks(peer.hasSentRequest ? limits.idleTime : limits.headerTime) { stop() }
    } else {
      for stream in streams.values { stream.tick() }
    }
  }
}
