internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import Storage

/// An HTTP/1.1 connection (RFC 9112). Requests are answered in order, one at a time. During a response, nothing more is read
/// from the socket. `HTTP1Scanner` parses bytes and `SocketWriter` sends them; `RequestAssembler` checks requests and
/// `ResponsePlan` plans responses. Recent responses on the loop come from its `ResponseTable`. Confined to the channel's
/// event loop.
final class HTTP1Connection: HTTPConnection {
  /// The phase of the connection.
  enum Phase {
    /// Between requests, or before the end of one.
    case receiving
    /// A route takes the request's body while it arrives, and responds when it likes.
    case arriving(ArrivingRequest)
    /// The route prepares the response. The place is among those that wait for the same one.
    case waiting(WaitingPlace?)
    /// The response is being sent. Then the connection continues or ends.
    case sending(keepsAlive: Bool)
    /// `live` grows while it is sent. Then the connection continues or ends.
    case live(LiveResponse, keepsAlive: Bool)
    /// The last response was sent. Input is dropped until the client closes, so that it can read the response.
    case lingering
    case closed
  }

  let services: HTTPServices
  let loop: LoopContext
  let writer: SocketWriter
  let context: ChannelHandlerContext
  let peer: HTTPPeer
  private let logsRequests: Bool
  private var scanner: HTTP1Scanner
  /// Bytes of an incomplete part.
  var unread = ByteBuffer()
  private var assembler: RequestAssembler
  private var table = TableReader()
  /// What admitted the request that is answered. The response ends with it.
  var pass: (any ViewerPass)?
  var phase = Phase.receiving
  /// At the last tick, the backlog of an endless body was above its lasting limit.
  private var isLiveBehind = false
  private var framing: ChunkedFraming?
  var waiting = WaitingParts()
  private var isTakingParts = false
  var isReadHeldBack = false
  /// What is unread, or waits, has to wait for a later turn of the loop.
  var awaitsTurn = false
  private(set) var isStopping = false
  private var inputIsClosed = false
  /// The tick in which the phase began, or in which an incomplete head began.
  var since: Int
  private var sawPart = false
  /// Whether `since` is the start of a head: the first one, or one that has begun to arrive.
  var isWithinHead = true

  init(
    services: HTTPServices, loop: LoopContext, writer: SocketWriter, context: ChannelHandlerContext, peer: HTTPPeer
  ) {
    self.services = services
    self.loop = loop
    self.writer = writer
    self.context = context
    self.peer = peer
    since = loop.now
    logsRequests = services.logger.logLevel <= .debug
    scanner = HTTP1Scanner(limits: services.limits)
    assembler = RequestAssembler(services: services, source: peer.source)
  }

  // MARK: Input

  var takesParts: Bool {
    switch phase {
    case .receiving: true
    case .arriving(let arriving): arriving.isOpen
    default: false
    }
  }

  func receive(_ bytes: ByteBuffer) {
    switch phase {
    case .lingering, .closed: return
    default: break
    }
    guard waiting.refusal == nil else { return }
    guard !awaitsTurn else {
      // Nothing is read meanwhile, but what the kernel has when the client closes its side.
      guard unread.readableBytes &+ bytes.readableBytes <= services.limits.pipelinedBytes else {
        return cut("it sent too many requests ahead")
      }
      unread.writeImmutableBuffer(bytes)
      return
    }
    var bytes = bytes
    let isAlone = unread.readableBytes == 0
    if !isAlone {
      unread.writeImmutableBuffer(bytes)
      bytes = unread
      unread = ByteBuffer()
    }
    let count = bytes.readableBytes
    do throws(HTTP1Scanner.Fault) {
      while let part = try scanner.next(&bytes) {
        receive(part)
        if part.isLast, bytes.readableBytes > 0, !goesOn() { break }
      }
    } catch {
      services.logger.debug("request refused", metadata: ["peer": "\(peer.address)", "error": "\(error)"])
      waiting.refuse(error.problem)
      takeParts()
      return
    }
    guard bytes.readableBytes > 0 else { return }
    // Copied, so that the read buffer is free for the next read. But not again for each byte of a slow head, or for each request
    // that was sent ahead.
    let isCopied = isAlone || (bytes.readableBytes < count && !awaitsTurn)
    unread = isCopied ? ByteBuffer(bytes: bytes.readableBytesView) : bytes
  }

  private func receive(_ part: RequestPart) {
    sawPart = true
    switch phase {
    case .receiving where waiting.isEmpty, .arriving where takesParts && waiting.isEmpty: take(part)
    case .lingering, .closed: break
    default: waiting.append(part, limit: services.limits.pipelinedRequests)
    }
  }

  func receive(_ error: any Error) {
    switch phase {
    case .lingering, .closed: return
    default: break
    }
    services.logger.debug("connection failed", metadata: ["peer": "\(peer.address)", "error": "\(error)"])
    close()
  }

  func readDidComplete() {
    if !sawPart, unread.readableBytes > 0, takesParts, !isWithinHead, !assembler.isReceivingBody {
      isWithinHead = true
      since = loop.now
    }
    sawPart = false
  }

  /// The client has closed its sending side. It may still read a response of known length. A client that waits for a playlist,
  /// or receives a live stream, counts as gone.
  func inputDidClose() {
    inputIsClosed = true
    switch phase {
    case .sending: break
    case .receiving where !waiting.isEmpty || awaitsTurn, .arriving where !waiting.isEmpty || awaitsTurn: break
    default: close()
    }
  }

  func channelDidClose() {
    let last = phase
    phase = .closed
    waiting.removeAll()
    unread = ByteBuffer()
    writer.close()
    switch last {
    case .waiting(let place): place?.leave()
    case .live(let response, _): response.stop()
    case .arriving(let arriving): arriving.body.abandon("the client closed the connection within its request")
    default: break
    }
  }

  // MARK: Requests

  /// Processes queued parts while no response is under way.
  func takeParts() {
    guard !isTakingParts else { return }
    isTakingParts = true
    defer { isTakingParts = false }
    while takesParts, !awaitsTurn, let part = waiting.next() {
      take(part)
      if part.isLast, takesParts, !waiting.isEmpty { _ = goesOn() }
    }
    guard takesParts, !awaitsTurn else { return }
    if let refusal = waiting.refusal {
      refuse(refusal)
    } else if inputIsClosed {
      close()
    } else if isReadHeldBack {
      isReadHeldBack = false
      context.read()
    }
  }

  private func take(_ part: RequestPart) {
    if case .arriving(let arriving) = phase { return take(part, of: arriving) }
    var next = part
    var head: RequestHead?
    if case .head(let asked) = part {
      // Before the table is asked: a token may stand behind the prefix.
      let found = asked.without(services.prefix)
      if answerAtOnce(found) { return }
      head = found
      next = .head(found)
    }
    switch assembler.receive(next) {
    case .nothing:
      if head != nil {
        since = loop.now
        isWithinHead = false
      }
    case .sendContinue:
      since = loop.now
      isWithinHead = false
      _ = writer.send(StandardResponse.goOn)
    case .arriving(let arriving): begin(arriving)
    case .request(let request, let keepsAlive):
      answer(request, head: head, keepsAlive: keepsAlive && peer.isServed && !isStopping)
    case .refuse(let problem): refuse(problem)
    }
  }

  private func answer(_ request: HTTPRequest, head: RequestHead?, keepsAlive: Bool) {
    let answer = services.answer(to: request, of: peer, on: loop.eventLoop)
    pass = answer.pass
    switch answer.kind {
    case .now(let response):
      if let head, mayShare(head) { loop.answers.keep(response, of: answer, for: head.target) }
      send(response, to: request, keepsAlive: keepsAlive)
    // A connection that ends meanwhile does not stay in memory until the response comes.
    case .later(let future):
      if let head, mayShare(head), let awaited = loop.answers.await(answer, for: head.target) {
        let client = table.client(head.fields, of: peer)
        let waiter = SharedResponse.Waiter(connection: self, client: client, acceptsGzip: head.fields.acceptsGzip)
        phase = .waiting(WaitingPlace(in: awaited, waiter))
        future.hop(to: loop.eventLoop).assumeIsolated().whenComplete { [services] result in
          awaited.resolve(services.response(of: result, to: request, countedBy: nil))
        }
        return
      }
      phase = .waiting(nil)
      future.hop(to: loop.eventLoop).assumeIsolated().whenComplete { [weak self] result in
        guard let self, case .waiting = phase else { return }
        let response = services.response(of: result, to: request, countedBy: answer.admission)
        if let pass = response.pass { self.pass = pass }
        send(response, to: request, keepsAlive: keepsAlive && !isStopping)
        takeParts()
      }
    }
  }

  /// Responds to an invalid request and ends the connection.
  private func refuse(_ problem: Problem) {
    waiting.removeAll()
    if case .arriving(let arriving) = phase { arriving.body.abandon(problem.detail) }
    pass = nil
    send(problem.response, to: HTTPRequest(method: .get, target: RequestTarget(segments: [])), keepsAlive: false)
  }

  // MARK: Responses

  func send(_ response: HTTPResponse, to request: HTTPRequest, keepsAlive: Bool) {
    if logsRequests { services.log(response, to: request, of: peer) }
    let plan = ResponsePlan(response, to: request)
    var encoded = encoded(plan, to: request, keepsAlive: keepsAlive)
    if case .complete = plan, case .pieces(let head, let pieces) = encoded.content,
      !writer.claim(pieces.own, behind: head.readableBytes)
    {
      let crowded = services.origins.applied(to: StandardResponse.crowded, of: request)
      encoded = self.encoded(ResponsePlan(crowded, to: request), to: request, keepsAlive: keepsAlive)
    }
    phase = .sending(keepsAlive: encoded.keepsAlive)
    transmit(encoded.content, keepsAlive: encoded.keepsAlive)
  }

  private func encoded(_ plan: ResponsePlan, to request: HTTPRequest, keepsAlive: Bool) -> HTTP1Response {
    HTTP1Response(plan, version: request.version, keepsAlive: keepsAlive, date: loop.date)
  }

  private func transmit(_ content: HTTP1Response.Content, keepsAlive: Bool) {
    let outcome: SocketWriter.Outcome
    switch content {
    case .buffer(let bytes):
      // Who asks ahead may read nothing of many small ones.
      if !waiting.isEmpty { writer.limitUnsent() }
      outcome = writer.send(bytes)
    case .pieces(let head, let pieces):
      writer.limitUnsent()
      outcome = writer.send(CollectionOfOne(.bytes(head)) + pieces)
    case .live(let head, let body, let framing):
      self.framing = framing
      startLive(LiveResponse(body), head: head, keepsAlive: keepsAlive)
      return
    }
    // Writing may have found the connection closed.
    guard case .sending = phase else { return }
    switch outcome {
    case .sent: responseDidEnd(keepsAlive: keepsAlive)
    case .waiting: break
    case .failed: close()
    }
  }

  private func responseDidEnd(keepsAlive: Bool) {
    guard keepsAlive, !isStopping else {
      linger()
      return
    }
    phase = .receiving
    since = loop.now
    isWithinHead = false
  }

  /// Closes the sending side and waits briefly for the client to close. Closing a socket with unread bytes would discard the
  /// response before the client has read it.
  private func linger() {
    phase = .lingering
    since = loop.now
    waiting.removeAll()
    if !peer.isServed { peer.answered() }
    guard !peer.isTLS, !inputIsClosed else {
      close()
      return
    }
    context.close(mode: .output, promise: nil)
    if isReadHeldBack {
      isReadHeldBack = false
      context.read()
    }
  }

  func close() {
    channelDidClose()
    context.close(promise: nil)
  }

  /// Resets the connection of a client that does not read; the kernel's buffer is discarded.
  private func cut(_ reason: String, _ count: HTTPTraffic.Count = .slowViewers) {
    services.traffic.add(count)
    services.logger.debug("viewer disconnected", metadata: ["peer": "\(peer.address)", "reason": "\(reason)"])
    closeAtOnce()
  }

  func closeAtOnce() {
    writer.resetOnClose()
    channelDidClose()
    context.channel.closeAtOnce()
  }

  func stop() {
    isStopping = true
    if case .receiving = phase, waiting.isEmpty, !awaitsTurn { close() }
  }
}

// MARK: Shared responses

extension HTTP1Connection: ResponseWaiter {
  /// Whether the response depends only on the target, and on gzip.
  private func mayShare(_ head: RequestHead) -> Bool {
    head.method == .get && head.body == .none && head.keepsAlive && head.hosts == 1 && head.version == .http1_1
      && head.expectation == .nothing && !head.fields.areConditional && !isStopping && !logsRequests && peer.isServed
  }

  /// Responds from the loop's table, or joins the connections that wait for the same response. False when the table has neither.
  private func answerAtOnce(_ head: RequestHead) -> Bool {
    guard mayShare(head), let found = table.find(head, of: peer, services, loop, pass: &pass) else { return false }
    let acceptsGzip = head.fields.acceptsGzip
    switch found {
    case .awaited(let answer, let client):
      let waiter = SharedResponse.Waiter(connection: self, client: client, acceptsGzip: acceptsGzip)
      phase = .waiting(WaitingPlace(in: answer, waiter))
    case .ready(let answer): give(answer, acceptsGzip: acceptsGzip)
    case .refused(let response):
      send(response, to: SharedResponse.request(acceptsGzip: acceptsGzip), keepsAlive: true)
    }
    return true
  }

  func take(_ answer: SharedResponse, for waiter: SharedResponse.Waiter) {
    guard case .waiting = phase else { return }
    if let pass, !pass.holds { return endWithPass() }
    if let refusal = table.refusal(of: waiter.client, to: answer, at: loop.now) {
      send(services.open(refusal), to: SharedResponse.request(acceptsGzip: waiter.acceptsGzip), keepsAlive: !isStopping)
    } else {
      give(answer, acceptsGzip: waiter.acceptsGzip)
    }
    if !waiting.isEmpty || isReadHeldBack || inputIsClosed { takeParts() }
  }

  private func give(_ answer: SharedResponse, acceptsGzip: Bool) {
    if isStopping {
      send(answer.response, to: SharedResponse.request(acceptsGzip: acceptsGzip), keepsAlive: false)
    } else {
      phase = .sending(keepsAlive: true)
      transmit(answer.content(acceptsGzip: acceptsGzip, date: loop.date), keepsAlive: true)
    }
  }
}

// MARK: Endless bodies

extension HTTP1Connection: LiveBodySink {
  private func startLive(_ response: LiveResponse, head: ByteBuffer, keepsAlive: Bool) {
    phase = .live(response, keepsAlive: keepsAlive)
    isLiveBehind = false
    writer.limitUnsent()
    if case .failed = writer.send(head) {
      close()
    } else {
      response.start(on: loop.eventLoop, sink: self)
    }
  }

  var liveBacklog: Int { writer.backlog }

  func writeLive(_ pieces: [BodyPiece]) {
    guard case .live = phase, pieces.totalLength > 0 else { return }
    if case .failed = writer.send(framing?.chunk(pieces) ?? pieces) {
      close()
    } else if writer.backlog > services.limits.liveBacklogBytes * services.limits.liveBurstFactor {
      cut("\(writer.backlog) bytes wait to be sent")
    }
  }

  func finishLive() {
    guard case .live(_, let keepsAlive) = phase else { return }
    phase = .sending(keepsAlive: keepsAlive)
    switch writer.send(framing.map { [$0.end] } ?? []) {
    case .sent:
      responseDidEnd(keepsAlive: keepsAlive)
      takeParts()
    case .waiting: break
    case .failed: close()
    }
  }
}

// MARK: Events of the writer

extension HTTP1Connection: SocketWriter.Delegate {
  func writerDidDrain() {
    guard case .sending(let keepsAlive) = phase else { return }
    responseDidEnd(keepsAlive: keepsAlive)
    takeParts()
  }

  func writerDidFail(_ reason: String) {
    services.logger.debug("response aborted", metadata: ["peer": "\(peer.address)", "reason": "\(reason)"])
    close()
  }
}

// MARK: Deadlines

extension HTTP1Connection: LoopContext.Member {
  func tick() {
    let limits = services.limits
    if peer.isOver(loop) { return close() }
    if let pass, !pass.holds { return endWithPass() }
    switch phase {
    case .receiving:
      let limit =
        isWithinHead ? limits.headerTime : assembler.isReceivingBody ? limits.bodyTime : limits.idleTime
      guard loop.now &- since >= loop.ticks(limit) else { return }
      if isWithinHead || assembler.isReceivingBody {
        services.logger.debug("request took too long to arrive", metadata: ["peer": "\(peer.address)"])
      }
      if writer.kernelHoldsBytes { writer.resetOnClose() }
      close()
    case .arriving, .waiting, .closed: break
    case .sending:
      writer.tick()
      if writer.isStalled(for: loop.ticks(limits.writeStall)) {
        cut("it read nothing for too long")
      } else if let reason = writer.calledIn {
        cut(reason, .lateViewers)
      }
    case .live:
      writer.tick()
      let wasBehind = isLiveBehind
      isLiveBehind = writer.backlog > limits.liveBacklogBytes
      if writer.isStalled(for: loop.ticks(limits.liveStall)) {
        cut("it read nothing for too long")
      } else if isLiveBehind, wasBehind {
        cut("\(writer.backlog) bytes wait to be sent")
      } else if let reason = writer.calledIn {
        cut(reason, .lateViewers)
      }
    case .lingering:
      if loop.now &- since >= loop.ticks(limits.lingerTime) { close() }
    }
  }
}
