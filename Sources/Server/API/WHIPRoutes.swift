internal import HTTP
internal import Ingest
internal import NIOCore
internal import NIOHTTP1
internal import Storage

/// `POST /whip/{stream}` (RFC 9725): a publisher by WebRTC offers its media and gets an answer. `/whip/{stream}/{session}` is
/// what it changes (PATCH) and ends (DELETE). The publish key is a bearer token (RFC 6750 §2.1) or `?key=`.
struct WHIPRoutes {
  /// Nil where WebRTC is off.
  let listener: WebRTCListener?
  /// Servers of STUN and TURN that publishers are told, as values of `Link` (RFC 9725 §4.6).
  let iceServers: [String]

  /// What a path names.
  private enum Place {
    case endpoint(StreamName)
    case session(StreamName, String)
  }

  /// Bytes of an offer that are collected. What a listener reads of them is its own limit.
  static let offerBytes = 64 * 1024

  /// Whether a request is for WHIP.
  static func isAsked(by request: HTTPRequest) -> Bool { request.path.first == "whip" }

  /// Whether its body is an offer, which may be larger than other bodies.
  static func isOffer(_ request: HTTPRequest) -> Bool {
    isAsked(by: request) && request.method == .post && request.path.count == 2
  }

  private static func place(_ path: [String]) -> Place? {
    guard path.count == 2 || path.count == 3, let name = StreamName(path[1]) else { return nil }
    return path.count == 2 ? .endpoint(name) : .session(name, path[2])
  }

  private static func allowed(_ place: Place) -> String {
    switch place {
    case .endpoint: "POST, OPTIONS"
    case .session: "PATCH, DELETE, OPTIONS"
    }
  }

  private static let (offerType, fragmentType) = ("application/sdp", "application/trickle-ice-sdpfrag")

  // MARK: OPTIONS

  /// RFC 9725 §4.2: which types an address takes.
  static func options(of request: HTTPRequest) -> HTTPResponse {
    guard let place = place(request.path) else { return Problem.nothingHere.response }
    var fields = [HeaderField("Allow", allowed(place))]
    switch place {
    case .endpoint: fields.append(HeaderField("Accept-Post", offerType))
    case .session: fields.append(HeaderField("Accept-Patch", fragmentType))
    }
    return HTTPResponse(status: .noContent, headers: fields)
  }

  // MARK: refusals

  /// Why the body of a request is refused; nil if it may come.
  func refusal(ofBodyOf request: HTTPRequest) -> Problem? {
    guard let place = Self.place(request.path) else { return .nothingHere }
    if let problem = refusal(of: request) { return problem }
    let type = request.header("Content-Type")?.split(separator: ";").first?.lowercased()
    switch (place, request.method) {
    case (.endpoint, .post):
      guard type == Self.offerType else {
        return Problem(
          .notAnOffer, "This address takes offers of WebRTC, and the body is of another type.",
          help: "Send Content-Type: \(Self.offerType).", headers: [HeaderField("Accept-Post", Self.offerType)])
      }
      return nil
    case (.session, .patch):
      guard type == Self.fragmentType else {
        return Problem(
          .notAnOffer, "A session takes fragments of offers, and the body is of another type.",
          help: "Send Content-Type: \(Self.fragmentType).",
          headers: [HeaderField("Accept-Patch", Self.fragmentType)])
      }
      return nil
    case (.session, .delete): return .bodyTooLarge(0)
    default: return .methodNotAllowed(allow: Self.allowed(place))
    }
  }

  private func refusal(of request: HTTPRequest) -> Problem? {
    guard listener != nil else {
      return Problem(.webRTCOff, "This server takes no WebRTC.", help: "Start it with --webrtc :8189.")
    }
    // A page of another origin could publish with the address of its visitor.
    guard AdminGate.isOwnOrigin(request) else {
      return Problem(
        .otherOrigin, "Only this server's own pages may publish.",
        help: "Send the request without an Origin field, or from a page of this server.")
    }
    return nil
  }

  // MARK: sessions

  /// The response to a request whose body, if it has one, is complete.
  func respond(to request: HTTPRequest, on eventLoop: any EventLoop) -> HTTPAnswer {
    guard let place = Self.place(request.path) else { return .now(Problem.nothingHere.response) }
    if let problem = refusal(of: request) { return .now(problem.response) }
    switch (place, request.method) {
    case (.endpoint, .post):
      return .now(
        Problem.badRequest("The request has no body, so there is no offer.", help: "Send a session description.")
          .response)
    case (.session(let stream, let session), .patch): return change(session, of: stream, request, on: eventLoop)
    case (.session(let stream, let session), .delete):
      guard let ended = listener?.end(session, of: stream) else { return .now(Problem.nothingHere.response) }
      return .later(
        ended.hop(to: eventLoop).map { $0 ? HTTPResponse(headers: [Self.never]) : Self.noSession.response })
    default: return .now(Problem.methodNotAllowed(allow: Self.allowed(place)).response)
    }
  }

  fileprivate static let never = HeaderField("Cache-Control", CachePolicy.never.value)
  private static let noSession = Problem(.noSuchSession, "There is no session of that name at this address.")

  private func change(
    _ session: String, of stream: StreamName, _ request: HTTPRequest, on eventLoop: any EventLoop
  ) -> HTTPAnswer {
    // RFC 9725 §4.3.1
    guard let tag = request.header("If-Match") else {
      return .now(
        Problem(
          .conditionMissing, "A change needs If-Match with the session's tag.", help: "Send the ETag of the answer."
        ).response)
    }
    let text = String(buffer: request.body)
    guard let change = listener?.change(session, of: stream, text, ifMatch: tag) else {
      return .now(Problem.nothingHere.response)
    }
    return .later(
      change.hop(to: eventLoop).map { change in
        switch change {
        case .noSuchSession: Self.noSession.response
        case .outdated:
          Problem(.conditionFailed, "The tag in If-Match is not that of the session.").response
        case .malformed(let error): Problem.badRequest("The fragment cannot be read: \(error).").response
        case .taken: HTTPResponse(status: .noContent, headers: [Self.never])
        case .restarted(let fragment, let tag):
          HTTPResponse(
            headers: [HeaderField("Content-Type", Self.fragmentType), HeaderField("ETag", tag), Self.never],
            body: .pieces([.bytes(ByteBuffer(string: fragment))]))
        }
      })
  }

  /// Collects the offer of a request.
  func body(of request: HTTPRequest) -> (any ArrivingBody)? {
    guard let listener, case .endpoint(let stream) = Self.place(request.path) else { return nil }
    return OfferBody(of: request, for: stream, listener, iceServers)
  }
}

/// The body of a request that offers.
private final class OfferBody: ArrivingBody {
  private let request: HTTPRequest
  private let stream: StreamName
  private let listener: WebRTCListener
  private let iceServers: [String]
  private var source: (any ArrivingBodySource)?
  private var loop: (any EventLoop)?
  private var bytes = ByteBuffer()

  init(of request: HTTPRequest, for stream: StreamName, _ listener: WebRTCListener, _ iceServers: [String]) {
    (self.request, self.stream, self.listener, self.iceServers) = (request, stream, listener, iceServers)
  }

  func begin(_ source: any ArrivingBodySource, on eventLoop: any EventLoop) {
    (self.source, loop) = (source, eventLoop)
    source.accept()
  }

  func receive(_ bytes: ByteBuffer) {
    guard source != nil else { return }
    guard self.bytes.readableBytes + bytes.readableBytes <= WHIPRoutes.offerBytes else {
      return respond(Problem.bodyTooLarge(WHIPRoutes.offerBytes).response)
    }
    self.bytes.writeImmutableBuffer(bytes)
  }

  func finish() {
    guard source != nil, let loop else { return }
    let client = WebRTCClient(
      address: request.source.peer, client: request.client, software: request.header("User-Agent") ?? "")
    let bearer = request.headers("Authorization").first.flatMap { AdminGate.bearer($0) }.map { Secret($0) }
    let reply = listener.offer(
      String(buffer: bytes), for: stream, key: bearer ?? request.query("key").map { Secret($0) }, of: client)
    bytes = ByteBuffer()
    let bound = NIOLoopBound(self, eventLoop: loop)
    let (request, stream) = (request, stream)
    reply.hop(to: loop).whenSuccess { reply in
      bound.value.conclude(reply, request, stream)
    }
  }

  func abandon(_ reason: String) {
    (source, bytes) = (nil, ByteBuffer())
  }

  private func conclude(_ reply: WebRTCReply, _ request: HTTPRequest, _ stream: StreamName) {
    guard source != nil else {
      // Nobody gets the answer, so nobody will come.
      if case .answered(let answer) = reply { _ = listener.end(answer.session, of: stream) }
      return
    }
    respond(reply.response(for: stream, base: request.base, iceServers))
  }

  private func respond(_ response: HTTPResponse) {
    let source = source.take()
    source?.respond(response)
  }
}

extension WebRTCReply {
  /// The response to an offer.
  fileprivate func response(
    for stream: StreamName, base: String, _ iceServers: [String]
  ) -> HTTPResponse {
    switch self {
    case .answered(let answer):
      HTTPResponse(
        status: .created,
        headers: [
          HeaderField("Content-Type", "application/sdp"),
          HeaderField("Location", "\(base)/whip/\(stream)/\(answer.session)"), HeaderField("ETag", answer.entityTag),
          WHIPRoutes.never,
        ] + iceServers.map { HeaderField("Link", $0) },
        body: .pieces([.bytes(ByteBuffer(string: answer.description))]))
    case .notTaken(let error):
      switch error.code {
      case .malformed: Problem.badRequest("The offer cannot be read: \(error).").response
      case .unacceptable: Problem(.offerNotTaken, "The offer cannot be taken: \(error).").response
      }
    case .refused(let refusal): refusal.problem.response
    case .tooManyWaiting:
      Problem(
        .tooManyUploads, "Too many sessions of this address wait to be connected.", help: "Try again in 5 s.",
        retryAfter: 5
      ).response
    case .ended(let reason): Problem(.publicationEnded, reason).response
    }
  }
}
