internal import HTTP
internal import Ingest
internal import NIOCore

/// `POST /whip/{stream}` (RFC 9725): a publisher by WebRTC offers its media and gets an answer. `/whip/{stream}/{session}` is
/// what it changes (PATCH) and ends (DELETE). The publish key is a bearer token (RFC 6750 §2.1) or `?key=`.
struct WHIPRoutes {
  private let sessions: WebRTCSessions?

  /// - Parameters:
  ///   - listener: nil where WebRTC is off.
  ///   - iceServers: servers of STUN and TURN that publishers are told, as values of `Link`.
  init(listener: WebRTCListener?, iceServers: [String]) {
    sessions = listener.map {
      WebRTCSessions(listener: $0, side: .publisher, offers: ArrivingOffers(), iceServers: iceServers)
    }
  }

  /// Whether a request is for WHIP.
  static func isAsked(by request: HTTPRequest) -> Bool { request.path.first == "whip" }

  /// Whether its body is an offer, which may be larger than other bodies.
  static func isOffer(_ request: HTTPRequest) -> Bool {
    isAsked(by: request) && request.method == .post && request.path.count == 2
  }

  // MARK: refusals

  /// Why the body of a request is refused; nil if it may come.
  func refusal(ofBodyOf request: HTTPRequest) -> Problem? {
    guard let place = WebRTCSessions.Place(request.path) else { return .nothingHere }
    return refusal(of: request) ?? WebRTCSessions.refusal(ofBodyOf: request, at: place)
  }

  private func refusal(of request: HTTPRequest) -> Problem? {
    guard sessions != nil else { return .webRTCIsOff }
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
    guard let place = WebRTCSessions.Place(request.path) else { return .now(Problem.nothingHere.response) }
    if let problem = refusal(of: request) { return .now(problem.response) }
    return sessions?.respond(to: request, at: place, on: eventLoop) ?? .now(Problem.nothingHere.response)
  }

  /// Collects the offer of a request.
  func body(of request: HTTPRequest) -> (any ArrivingBody)? {
    guard let sessions, case .endpoint(let stream)? = WebRTCSessions.Place(request.path) else { return nil }
    let (key, client) = (request.publishKey, WebRTCClient(of: request))
    return OfferBody(sessions.place(for: request)) { offer, loop in
      sessions.listener.offer(offer, for: stream, key: key, of: client).hop(to: loop).map {
        sessions.response($0, to: request)
      }
    } abandoned: {
      sessions.end(answeredBy: $0, of: stream)
    }
  }
}

extension Problem {
  static let webRTCIsOff = Problem(
    .webRTCOff, "This server takes no WebRTC.", help: "Start it with --webrtc :8189.")
}

extension WebRTCClient {
  init(of request: HTTPRequest) {
    self.init(address: request.source.peer, client: request.client, software: request.header("User-Agent") ?? "")
  }
}

extension WebRTCSessions {
  /// Ends the session of an answer that nobody got.
  func end(answeredBy response: HTTPResponse, of stream: StreamName) {
    guard let place = response.headers.first(where: { $0.name == "Location" })?.value,
      let session = place.split(separator: "/").last
    else { return }
    _ = listener.end(String(session), of: stream, side)
  }
}
