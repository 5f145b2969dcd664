internal import Base
internal import Logging
internal import NIOCore

/// An HTTP/2 connection (RFC 9113). `HTTP2Receiver` reads, checks and limits what the client sends. This class opens streams,
/// each with one request and its response, and ends the connection when it is idle, stalled, faulty or being stopped.
/// `HTTP2Sender` decides what is sent when. Confined to the channel's event loop.
final class HTTP2Connection: HTTPConnection {
  /// A ping that shows whether the client has received a GOAWAY.
  private static let goAwayPing: UInt64 = 0x7765_6972
  /// The number in a GOAWAY that still allows all streams (RFC 9113 §6.8).
  private static let allStreams = UInt32(Int32.max)
  /// Bytes of bodies that wait to be taken, of all streams, beyond which the client's window is not opened again.
  static let heldBytes = 256 * 1024

  let services: HTTPServices
  let loop: LoopContext
  let peer: HTTPPeer
  let sender: HTTP2Sender
  let logsRequests: Bool
  var table = TableReader()
  private let context: ChannelHandlerContext
  private var receiver: HTTP2Receiver
  /// Those whose request is not answered yet, or whose response is not sent yet.
  private var streams: [HTTP2Stream] = []
  private var refusals: TokenBucket
  /// The initial window of a new stream.
  private var streamWindow = HTTP2Receiver.window
  /// The tick in which the connection began or its last stream ended.
  private var idleSince: Int
  /// The tick in which a field section began whose end has not come.
  private var sectionSince: Int?
  /// The tick in which the connection began to stop.
  private var stoppingSince: Int?
  /// The last stream that the last GOAWAY still allowed.
  private var finalStream: UInt32?
  private var isClosed = false

  init(services: HTTPServices, loop: LoopContext, context: ChannelHandlerContext, peer: HTTPPeer) {
    self.services = services
    self.loop = loop
    self.context = context
    self.peer = peer
    idleSince = loop.now
    receiver = HTTP2Receiver(
      limits: services.limits, ticks: loop.ticks(.seconds(Int64(HTTP2Receiver.rateSeconds))))
    let refusedStreams = Double(services.limits.refusedStreams)
    refusals = TokenBucket(burst: refusedStreams, perSecond: refusedStreams / 60)
    logsRequests = services.logger.logLevel <= .debug
    sender = HTTP2Sender(context: context, loop: loop, pools: services.pools, address: peer.host)
    sender.didDrain = { [weak self] in self?.endIfDone() }
  }

  /// Sends the first frame.
  func begin() {
    sender.frames.settings(streams: services.limits.streams, sectionBytes: 2 &* services.limits.headerBytes)
    sender.pump()
  }

  // MARK: Input

  func receive(_ bytes: ByteBuffer) {
    guard !isClosed else { return }
    sender.isHeld = true
    receiver.now = loop.now
    receiver.allow(sender.takeAllowance())
    receiver.receive(bytes)
    do throws(HTTP2FrameReader.Fault) {
      while !isClosed, let event = try receiver.next() { try take(event) }
      reopenWindow()
    } catch {
      fail(error.code, "it broke the rules of HTTP/2, or sent too much of what costs more to receive")
    }
  }

  private func take(_ event: HTTP2Receiver.Event) throws(HTTP2FrameReader.Fault) {
    switch event {
    case .request(let id, _, _) where finalStream.map { id > $0 } == true:
      receiver.resetLocally(id)
      refuse(id)
    case .request(let id, let head, let isEnd): open(id, head, isEnd: isEnd)
    case .data(let id, let bytes, let isEnd):
      guard let stream = stream(id) else { return }
      let bodies = streams.reduce(0) { $0 &+ $1.bodyBytes }
      stream.receive(bytes, isEnd: isEnd, room: services.limits.requestBodyBytes &- bodies)
      reopenWindow(of: stream)
      if isEnd { closeIfOver(stream) }
    case .trailers(let id):
      guard let stream = stream(id) else { return }
      stream.end()
      closeIfOver(stream)
    case .reset(let id):
      if let stream = stream(id) { remove(stream) }
    case .windowUpdate(0, let increment):
      guard sender.widen(by: increment) else { throw .init(.flowControlError) }
    case .windowUpdate(let id, let increment):
      guard let stream = stream(id) else { return }
      if !sender.widen(stream.outbox, by: increment) { try take(try receiver.fault(id, .flowControlError)) }
    case .settings(let settings): try take(settings)
    case .ping(let data): sender.frames.ping(data, acknowledges: true)
    case .pong(let data): if data == Self.goAwayPing { allowNoMoreStreams() }
    case .surplus(let id): refuse(id)
    case .streamFault(let id, let code):
      services.logger.debug("stream failed", metadata: ["peer": "\(peer.address)", "code": "\(code)"])
      sender.frames.reset(id, code)
      if let stream = stream(id) { remove(stream) }
    }
  }

  private func take(_ settings: HTTP2PeerSettings) throws(HTTP2FrameReader.Fault) {
    sender.frames.acknowledgeSettings()
    if settings.namesTable { sender.frames.owesTableSize = true }
    guard let window = settings.window else { return }
    let change = window &- streamWindow
    streamWindow = window
    for stream in streams where !sender.widen(stream.outbox, by: change) { throw .init(.flowControlError) }
  }

  private func open(_ id: UInt32, _ asked: RequestHead?, isEnd: Bool) {
    guard let asked else {
      let stream = add(id)
      return stream.refuse(StandardResponse.fieldsTooLarge, isEnd: isEnd)
    }
    // Before the table is asked: a token may stand behind the prefix.
    let head = asked.without(services.prefix)
    guard isEnd, mayShare(head) else { return add(id).begin(head, isEnd: isEnd) }
    var pass: (any ViewerPass)?
    guard let found = table.find(head, of: peer, services, loop, pass: &pass) else {
      return add(id).begin(head, isEnd: isEnd)
    }
    if case .ready(let answer) = found {
      if let follow = answer.follow, let peer = peer.source.peer { follow(peer) }
      let response = answer.http2(acceptsGzip: head.fields.acceptsGzip, date: loop.date)
      // Most requests end here: no object is made for them.
      if sender.sendWhole(response, on: id, window: streamWindow) {
        _ = receiver.endLocally(id)
        if streams.isEmpty { idleSince = loop.now }
        return
      }
      add(id).give(response, pass)
    } else {
      add(id).take(found, pass, head)
    }
  }

  /// Whether the response depends only on the target, and on gzip.
  func mayShare(_ head: RequestHead) -> Bool {
    head.method == .get && head.body == .none && head.hosts == 1 && head.expectation == .nothing
      && !head.fields.areConditional && !logsRequests && peer.isServed
  }

  private func add(_ id: UInt32) -> HTTP2Stream {
    let stream = HTTP2Stream(id: id, window: streamWindow, connection: self)
    streams.append(stream)
    return stream
  }

  private func stream(_ id: UInt32) -> HTTP2Stream? { streams.last { $0.outbox.id == id } }

  /// Refuses a stream beyond the limit. It was not processed and may be retried (RFC 9113 §5.1.2, §8.7).
  private func refuse(_ id: UInt32) {
    guard !refusals.take(now: .now()) else { return sender.frames.reset(id, .refusedStream) }
    fail(.enhanceYourCalm, "too many streams were refused")
  }

  func readDidComplete() {
    guard !isClosed else { return }
    receiver.settle()
    sectionSince = receiver.isWithinSection ? sectionSince ?? loop.now : nil
    sender.isHeld = false
    sender.pump()
    guard !sender.isOverfull() else {
      services.logger.debug(
        "connection ended", metadata: ["peer": "\(peer.address)", "reason": "it sends and reads nothing"])
      return close()
    }
    endIfDone()
  }

  /// A stream carries a publisher's media. Other requests of such a connection are few, so it stays so.
  func readBursts() { context.channel.readBursts() }

  /// Reopens the client's window for all streams, when half of it is used, and not too much waits to be taken. Also for what came
  /// on streams that are closed.
  func reopenWindow() {
    guard !isClosed, receiver.window < HTTP2Receiver.window / 2,
      streams.reduce(0, { $0 &+ $1.heldBytes }) <= Self.heldBytes
    else { return }
    sender.frames.windowUpdate(0, HTTP2Receiver.window &- receiver.window)
    receiver.window = HTTP2Receiver.window
  }

  /// Reopens the client's window for a stream that takes its body, when half of it is used.
  func reopenWindow(of stream: HTTP2Stream) {
    guard !isClosed, stream.isReceiving, let index = receiver.index(of: stream.outbox.id),
      receiver.streams[index].window < HTTP2Receiver.window / 2
    else { return }
    sender.frames.windowUpdate(stream.outbox.id, HTTP2Receiver.window &- receiver.streams[index].window)
    receiver.reopen(index)
  }

  func receive(_ error: any Error) {
    guard !isClosed else { return }
    services.logger.debug("connection failed", metadata: ["peer": "\(peer.address)", "error": "\(error)"])
    close()
  }

  /// The client has closed its sending side; it needs no more responses.
  func inputDidClose() { close() }

  // MARK: The end of a stream

  /// Writes the head of a response.
  func send(_ head: ByteBuffer, isEnd: Bool, of stream: HTTP2Stream) {
    sender.frames.headers(head, stream: stream.outbox.id, isEnd: isEnd)
    if isEnd { didEnd(stream) }
  }

  /// The end of the response is in a frame.
  func didEnd(_ stream: HTTP2Stream) {
    if receiver.endLocally(stream.outbox.id) { remove(stream) }
  }

  /// The client's last frame of the stream has come.
  private func closeIfOver(_ stream: HTTP2Stream) {
    if receiver.index(of: stream.outbox.id) == nil { remove(stream) }
  }

  /// Resets one stream.
  func reset(_ stream: HTTP2Stream, _ code: HTTP2Code) {
    guard !isClosed, streams.contains(where: { $0 === stream }) else { return }
    receiver.resetLocally(stream.outbox.id)
    sender.frames.reset(stream.outbox.id, code)
    remove(stream)
    sender.pump()
  }

  private func remove(_ stream: HTTP2Stream) {
    guard let index = streams.lastIndex(where: { $0 === stream }) else { return }
    streams.remove(at: index)
    sender.drop(stream.outbox)
    stream.close()
    reopenWindow()
    if streams.isEmpty { idleSince = loop.now }
    endIfDone()
  }

  // MARK: The end

  /// Sends a GOAWAY. Streams that the client opens before it receives that are still served (RFC 9113 §6.8). The connection ends
  /// with the last stream.
  func stop() {
    guard stoppingSince == nil, !isClosed else { return }
    stoppingSince = loop.now
    if !streams.isEmpty {
      sender.frames.goAway(last: Self.allStreams, .noError)
      sender.frames.ping(Self.goAwayPing, acknowledges: false)
      sender.pump()
    }
    endIfDone()
  }

  /// Sends the last GOAWAY: the client has received the first one or had enough time for it, or nothing is under way.
  private func allowNoMoreStreams() {
    guard stoppingSince != nil, finalStream == nil else { return }
    finalStream = receiver.lastStream
    goAway(.noError)
  }

  /// The last stream in a GOAWAY must not grow (RFC 9113 §6.8).
  private func goAway(_ code: HTTP2Code) { sender.frames.goAway(last: finalStream ?? receiver.lastStream, code) }

  private func endIfDone() {
    guard stoppingSince != nil, !isClosed, !sender.isHeld, streams.isEmpty, sender.isIdle else { return }
    guard finalStream != nil else {
      allowNoMoreStreams()
      // It calls this again when that is on the socket.
      return sender.pump()
    }
    // TLS waits for the client to close.
    if !peer.isServed { peer.answered() }
    close()
  }

  /// Ends the connection because of what the client did.
  private func fail(_ code: HTTP2Code, _ reason: String) {
    guard !isClosed else { return }
    services.logger.debug(
      "connection ended", metadata: ["peer": "\(peer.address)", "code": "\(code)", "reason": "\(reason)"])
    goAway(code)
    sender.isHeld = false
    sender.pump()
    close()
  }

  func close() {
    guard !isClosed else { return }
    channelDidClose()
    context.close(promise: nil)
  }

  func closeAtOnce() {
    guard !isClosed else { return }
    channelDidClose()
    context.channel.closeAtOnce()
  }

  func channelDidClose() {
    guard !isClosed else { return }
    isClosed = true
    let open = streams
    streams.removeAll()
    for stream in open { stream.close() }
    sender.close()
  }

  // MARK: Deadlines

  func tick() {
    guard !isClosed else { return }
    if peer.isOver(loop) { return close() }
    let limits = services.limits
    if let stoppingSince, finalStream == nil, loop.now &- stoppingSince >= loop.ticks(limits.lingerTime) {
      allowNoMoreStreams()
      sender.pump()
    }
    if sender.isStalled(for: loop.ticks(limits.writeStall)) {
      services.logger.debug(
        "viewer disconnected", metadata: ["peer": "\(peer.address)", "reason": "it read nothing for too long"])
      closeAtOnce()
    } else if sender.isCalledIn {
      services.traffic.add(.lateViewers)
      services.logger.debug(
        "viewer disconnected", metadata: ["peer": "\(peer.address)", "reason": "\(SendingPools.reason)"])
      closeAtOnce()
    } else if let sectionSince, loop.now &- sectionSince >= loop.ticks(limits.headerTime) {
      fail(.enhanceYourCalm, "the fields of a request took too long to arrive")
    } else if streams.isEmpty {
      if loop.now &- idleSince >= loop.ticks(peer.hasSentRequest ? limits.idleTime : limits.headerTime) { stop() }
    } else {
      for stream in streams { stream.tick() }
    }
  }
}
