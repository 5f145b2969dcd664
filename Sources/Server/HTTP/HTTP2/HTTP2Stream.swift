internal import Base
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import Storage

/// One request of an HTTP/2 connection and its response (RFC 9113 §8.1). Confined to the connection's event loop.
final class HTTP2Stream {
  private enum Phase {
    /// The request's body is arriving.
    case receiving
    /// A route takes the body while it arrives.
    case arriving(ArrivingRequest)
    /// The route prepares the response. The place is among those that wait for the same one.
    case waiting(WaitingPlace?)
    case sending
    case live(LiveResponse)
    case closed
  }

  let outbox: HTTP2Outbox
  private let connection: HTTP2Connection
  private let services: HTTPServices
  private var assembler: RequestAssembler
  private var phase = Phase.receiving
  /// What admitted the request. The response ends with it.
  private var pass: (any ViewerPass)?
  /// At the last tick, the backlog of an endless body was above its lasting limit.
  private var isLiveBehind = false
  /// Whether the client has sent its last frame on this stream.
  private var remoteHasEnded = false
  /// A response to HEAD has no body.
  private var isHead = false
  /// The tick in which the stream began.
  private let since: Int
  /// Received bytes of an incomplete request body.
  private(set) var bodyBytes = 0

  init(id: UInt32, window: Int, connection: HTTP2Connection) {
    self.connection = connection
    services = connection.services
    outbox = HTTP2Outbox(id: id, window: window)
    since = connection.loop.now
    assembler = RequestAssembler(services: services, source: connection.peer.source)
    outbox.owner = self
  }

  var isReceiving: Bool {
    switch phase {
    case .receiving: !remoteHasEnded
    case .arriving(let arriving): arriving.isOpen && !remoteHasEnded
    default: false
    }
  }

  /// Bytes of an arriving body that wait to be taken; the client's window bounds them.
  var heldBytes: Int { if case .arriving(let arriving) = phase { arriving.heldBytes } else { 0 } }

  // MARK: The request

  func begin(_ head: RequestHead, isEnd: Bool) {
    remoteHasEnded = isEnd
    isHead = head.method == .head
    take(.head(head), sharing: head)
  }

  /// Refuses a request whose fields are too large to be read.
  func refuse(_ problem: Problem, isEnd: Bool) {
    remoteHasEnded = isEnd
    refuse(problem)
  }

  /// A part of the body. `room` is the number of body bytes that the connection may still receive.
  func receive(_ bytes: ByteBuffer, isEnd: Bool, room: Int) {
    remoteHasEnded = remoteHasEnded || isEnd
    if case .arriving(let arriving) = phase {
      arriving.hold(bytes)
      return handIn()
    }
    guard case .receiving = phase else { return }
    guard bytes.readableBytes <= room else {
      refuse(Problem.bodyTooLarge(services.limits.requestBodyBytes))
      return
    }
    bodyBytes &+= bytes.readableBytes
    take(.body(bytes))
    if isEnd { end() }
  }

  /// Trailers, which are not used, or an empty last frame.
  func end() {
    remoteHasEnded = true
    switch phase {
    case .receiving: take(.end)
    case .arriving: handIn()
    default: break
    }
  }

  /// `head` is that of a request whose response others may share.
  private func take(_ part: RequestPart, sharing head: RequestHead? = nil) {
    guard case .receiving = phase else { return }
    switch assembler.receive(part) {
    case .nothing: break
    case .sendContinue:
      if !remoteHasEnded { connection.send(HTTP2Response.goOn, isEnd: false, of: self) }
    case .arriving(let arriving): begin(arriving)
    case .request(let request, _): answer(request, head: head)
    case .refuse(let problem): refuse(problem)
    }
  }

  private func answer(_ request: HTTPRequest, head: RequestHead?) {
    bodyBytes = 0
    let loop = connection.loop
    let answer = services.answer(to: request, of: connection.peer, on: loop.eventLoop)
    pass = answer.pass
    switch answer.kind {
    case .now(let response):
      if let head, connection.mayShare(head) { loop.answers.keep(response, of: answer, for: head.target) }
      send(response, to: request)
    // A stream that is reset meanwhile does not stay in memory until the response comes.
    case .later(let future):
      if let head, connection.mayShare(head), let awaited = loop.answers.await(answer, for: head.target) {
        wait(for: awaited, connection.table.client(head.fields, of: connection.peer), head)
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
        send(response, to: request)
        connection.sender.pump()
      }
    }
  }

  private func refuse(_ problem: Problem) {
    bodyBytes = 0
    send(
      problem.response,
      to: HTTPRequest(
        method: isHead ? .head : .get, target: RequestTarget(segments: []), version: HTTP2HeadBuilder.version))
  }

  // MARK: The response

  private func send(_ response: HTTPResponse, to request: HTTPRequest) {
    if connection.logsRequests { services.log(response, to: request, of: connection.peer) }
    transmit(HTTP2Response(ResponsePlan(response, to: request), date: connection.loop.date))
  }

  private func transmit(_ response: HTTP2Response) {
    phase = .sending
    let sender = connection.sender
    switch response.body {
    case .pieces(let pieces):
      if remoteHasEnded, sender.sendWhole(response, on: outbox.id, window: outbox.window) {
        connection.didEnd(self)
        break
      }
      guard sender.claim(response.own, for: outbox) else {
        return send(services.open(StandardResponse.crowded), to: SharedResponse.plainRequest)
      }
      connection.send(response.head, isEnd: pieces.isEmpty, of: self)
      if pieces.isEmpty {
        leaveRequest()
      } else {
        outbox.append(pieces, at: connection.loop.now)
        outbox.end()
        sender.schedule(outbox)
      }
    case .live(let body):
      connection.send(response.head, isEnd: false, of: self)
      let live = LiveResponse(body)
      phase = .live(live)
      live.start(on: connection.loop.eventLoop, sink: self)
    }
    if !connection.peer.isServed { connection.stop() }
  }

  /// The response was sent; the rest of the request is not needed (RFC 9113 §8.1).
  private func leaveRequest() {
    if !remoteHasEnded { connection.reset(self, .noError) }
  }

  /// The stream has ended.
  func close() {
    let last = phase
    phase = .closed
    bodyBytes = 0
    outbox.close()
    switch last {
    case .waiting(let place): place?.leave()
    case .live(let response): response.stop()
    case .arriving(let arriving): arriving.body.abandon("the client closed the connection within its request")
    default: break
    }
  }

  /// Resets the stream of a viewer that does not read.
  private func cut(_ reason: String, _ count: HTTPTraffic.Count = .slowViewers) {
    services.traffic.add(count)
    services.logger.debug(
      "viewer disconnected", metadata: ["peer": "\(connection.peer.address)", "reason": "\(reason)"])
    connection.reset(self, .cancel)
  }

  func tick() {
    let limits = services.limits
    let loop = connection.loop
    if let pass, !pass.holds { return endWithPass() }
    switch phase {
    case .receiving:
      guard loop.now &- since >= loop.ticks(limits.bodyTime) else { return }
      services.logger.debug("request took too long to arrive", metadata: ["peer": "\(connection.peer.address)"])
      connection.reset(self, .cancel)
    case .sending:
      if outbox.isStalled(for: loop.ticks(limits.writeStall), at: loop.now) {
        cut("it read nothing for too long")
      } else if outbox.queue.isCalledIn {
        cut(LeftoverBudget.reason, .lateViewers)
      }
    case .live:
      let wasBehind = isLiveBehind
      isLiveBehind = outbox.backlog > limits.liveBacklogBytes
      if outbox.isStalled(for: loop.ticks(limits.liveStall), at: loop.now) {
        cut("it read nothing for too long")
      } else if isLiveBehind, wasBehind {
        cut("\(outbox.backlog) bytes wait to be sent")
      } else if outbox.queue.isCalledIn {
        cut(LeftoverBudget.reason, .lateViewers)
      }
    case .arriving, .waiting, .closed: break
    }
  }
}

extension HTTP2Stream {
  /// Ends what a pass admitted, because that holds no longer.
  private func endWithPass() {
    pass = nil
    switch phase {
    case .waiting(let place):
      place?.leave()
      send(services.open(StandardResponse.passEnded.response), to: SharedResponse.plainRequest)
      connection.sender.pump()
    case .sending, .live: connection.reset(self, .cancel)
    // A publisher is judged by its key.
    case .receiving, .arriving, .closed: break
    }
  }
}

extension HTTP2Stream: HTTP2Outbox.Owner {
  func outboxDidEnd() { connection.didEnd(self) }

  func outboxDidDrain() {
    if case .sending = phase { leaveRequest() }
  }

  func outboxDidFail(_ reason: String) {
    services.logger.debug(
      "response aborted", metadata: ["peer": "\(connection.peer.address)", "reason": "\(reason)"])
    connection.reset(self, .internalError)
  }
}

// MARK: Shared responses

extension HTTP2Stream: ResponseWaiter {
  /// Goes on with what the loop's table has for the request: a response that is awaited, or a refusal.
  func take(_ found: TableReader.Found, _ pass: (any ViewerPass)?, _ head: RequestHead) {
    remoteHasEnded = true
    self.pass = pass
    switch found {
    case .awaited(let answer, let client):
      if let follow = answer.follow, let peer = connection.peer.source.peer { follow(peer) }
      wait(for: answer, client, head)
    case .ready(let answer): give(answer, acceptsGzip: head.fields.acceptsGzip)
    case .refused(let response):
      send(response, to: SharedResponse.request(acceptsGzip: head.fields.acceptsGzip))
    }
  }

  /// Sends a response that others get, too.
  func give(_ response: HTTP2Response, _ pass: (any ViewerPass)?) {
    remoteHasEnded = true
    self.pass = pass
    transmit(response)
  }

  private func wait(for answer: SharedResponse, _ client: ClientID, _ head: RequestHead) {
    let waiter = SharedResponse.Waiter(connection: self, client: client, acceptsGzip: head.fields.acceptsGzip)
    phase = .waiting(WaitingPlace(in: answer, waiter))
  }

  func take(_ answer: SharedResponse, for waiter: SharedResponse.Waiter) {
    guard case .waiting = phase else { return }
    if let pass, !pass.holds { return endWithPass() }
    let loop = connection.loop
    if let refusal = connection.table.refusal(of: waiter.client, to: answer, at: loop.now) {
      send(services.open(refusal), to: SharedResponse.request(acceptsGzip: waiter.acceptsGzip))
    } else {
      give(answer, acceptsGzip: waiter.acceptsGzip)
    }
    connection.sender.pump()
  }

  private func give(_ answer: SharedResponse, acceptsGzip: Bool) {
    transmit(answer.http2(acceptsGzip: acceptsGzip, date: connection.loop.date))
  }
}

// MARK: Bodies that are taken while they arrive

extension HTTP2Stream: ArrivingBodySource {
  private func begin(_ arriving: ArrivingRequest) {
    connection.peer.requestArrived()
    guard connection.peer.isServed else {
      return send(services.open(connection.peer.refusal), to: arriving.request)
    }
    phase = .arriving(arriving)
    arriving.body.begin(self, on: connection.loop.eventLoop)
  }

  /// Hands in what is held, as far as it is taken. The body may respond meanwhile, or the stream end.
  private func handIn() {
    while case .arriving(let arriving) = phase, arriving.isOpen {
      if let part = arriving.takeHeld() {
        arriving.body.receive(part)
      } else {
        if remoteHasEnded { arriving.finish() }
        return
      }
    }
  }

  func accept() {
    guard case .arriving(let arriving) = phase else { return }
    arriving.accept()
    if arriving.body.isMedia {
      connection.peer.keep()
      connection.readBursts()
    }
    if arriving.awaitsContinue, arriving.heldBytes == 0, !remoteHasEnded {
      connection.send(HTTP2Response.goOn, isEnd: false, of: self)
    }
    goOn()
  }

  func pause() {
    if case .arriving(let arriving) = phase { arriving.pause() }
  }

  func resume() {
    guard case .arriving(let arriving) = phase else { return }
    arriving.resume()
    goOn()
  }

  private func goOn() {
    handIn()
    connection.reopenWindow(of: self)
    connection.reopenWindow()
    connection.sender.pump()
  }

  func respond(_ response: HTTPResponse) {
    guard case .arriving(let arriving) = phase else { return }
    send(services.origins.applied(to: response, of: arriving.request), to: arriving.request)
    connection.reopenWindow()
    connection.sender.pump()
  }

  func cut() { connection.reset(self, .cancel) }
}

// MARK: Endless bodies

extension HTTP2Stream: LiveBodySink {
  var liveBacklog: Int { outbox.backlog }

  func writeLive(_ pieces: [BodyPiece]) {
    guard case .live = phase else { return }
    outbox.append(pieces, at: connection.loop.now)
    connection.sender.schedule(outbox)
    if outbox.backlog > services.limits.liveBacklogBytes * services.limits.liveBurstFactor {
      cut("\(outbox.backlog) bytes wait to be sent")
    }
  }

  func finishLive() {
    guard case .live = phase else { return }
    phase = .sending
    outbox.end()
    connection.sender.schedule(outbox)
  }
}
