package import HTTP
package import NIOCore
internal import Publishing
package import WebRTC

/// `POST /whip/{stream}` (RFC 9725): a publisher by WebRTC offers its media and gets an answer. `/whip/{stream}/{session}` is
/// what it changes (PATCH) and ends (DELETE). The publish key is a bearer token (RFC 6750 §2.1) or `?key=`.
package struct WHIPRoutes {
  private let sessions: WebRTCSessions?
  private let origins: @Sendable () -> CrossOrigin

  /// - Parameters:
  ///   - listener: nil where WebRTC is off.
  ///   - iceServers: servers of STUN and TURN that publishers are told, as values of `Link`.
  ///   - origins: whose pages may publish beside this server's own.
  package init(listener: WebRTCListener?, iceServers: [String], origins: @escaping @Sendable () -> CrossOrigin) {
    self.origins = origins
    sessions = listener.map {
      WebRTCSessions(listener: $0, side: .publisher, offers: ArrivingOffers(), iceServers: iceServers)
    }
  }

  /// Whether a request is for WHIP.
  package static func isAsked(by request: HTTPRequest) -> Bool { request.path.first == "whip" }

  /// Whether its body is an offer, which may be larger than other bodies.
  package static func isOffer(_ request: HTTPRequest) -> Bool {
    isAsked(by: request) && request.method == .post && request.path.count == 2
  }

  // MARK: refusals

  /// Why the body of a request is refused; nil if it may come.
  package func refusal(ofBodyOf request: HTTPRequest) -> Problem? {
    guard let place = WebRTCSessions.Place(request.path) else { return .nothingHere }
    return refusal(of: request) ?? WebRTCSessions.refusal(ofBodyOf: request, at: place)
  }

  private func refusal(of request: HTTPRequest) -> Problem? {
    guard sessions != nil else { return .webRTCIsOff }
    // A page of another origin could publish with the address of its visitor.
    guard AdminGate.isOwnOrigin(request) || named(request) != nil else {
      return Problem(
        .otherOrigin, "Pages of another origin than this server's own may not publish, unless --cors names it.",
        help: "Start weir with --cors ORIGIN (http.cors), such as https://studio.example, and publish from there with a"
          + " key; or send no Origin field.")
    }
    return nil
  }

  /// The origin of a request's page, if it is another one than this server's, and may publish.
  private func named(_ request: HTTPRequest) -> String? {
    let fields = request.headers("Origin")
    guard fields.count == 1, origins().mayPublish(fields[0]) else { return nil }
    return fields[0]
  }

  private static func needsKey(_ origin: String) -> Problem {
    Problem(
      .publishKeyWrong,
      "Pages of other origins publish with a key or a token alone, and this one, of \(origin), sent none.",
      help: "Send it as Authorization: Bearer KEY; weir keys add makes one.",
      headers: [HeaderField("WWW-Authenticate", #"Bearer realm="weir""#)])
  }

  // MARK: sessions

  /// The response to a request whose body, if it has one, is complete.
  package func respond(to request: HTTPRequest, on eventLoop: any EventLoop) -> HTTPAnswer {
    guard let place = WebRTCSessions.Place(request.path) else { return .now(Problem.nothingHere.response) }
    if let problem = refusal(of: request) { return .now(problem.response) }
    return sessions?.respond(to: request, at: place, on: eventLoop) ?? .now(Problem.nothingHere.response)
  }

  /// Collects the offer of a request.
  package func body(of request: HTTPRequest) -> (any ArrivingBody)? {
    guard let sessions, case .endpoint(let stream)? = WebRTCSessions.Place(request.path) else { return nil }
    var client = WebRTCClient(of: request)
    let origin = AdminGate.isOwnOrigin(request) ? nil : named(request)
    if origin != nil { client.credential = .required }
    let (key, offerer) = (request.publishKey, client)
    return OfferBody(sessions.place(for: request)) { offer, loop in
      // Here, so that the page can read it: what is refused before its body came is not for other origins.
      if let origin, (key?.length ?? 0) == 0 { return loop.makeSucceededFuture(Self.needsKey(origin).response) }
      return sessions.listener.offer(offer, for: stream, key: key, of: offerer).hop(to: loop).map {
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
