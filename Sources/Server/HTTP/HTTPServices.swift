internal import Ingest
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// What is the same for all connections of a listener, and what all of them do with a request.
struct HTTPServices: Sendable {
  let responder: any HTTPResponder
  let limits: HTTPLimits
  /// Whose word on the addresses of others is believed.
  let proxies: TrustedProxies
  /// Whose pages may read what.
  let origins: CrossOrigin
  let limiter: ConnectionLimiter
  let traffic: HTTPTraffic
  let pool: NIOThreadPool
  let logger: Logger

  /// What is answered to a whole request: by the routes, unless it is OPTIONS, the server is full, or the
  /// connection asks for the same again and again. On `eventLoop`.
  func answer(to request: HTTPRequest, of peer: HTTPPeer, on eventLoop: any EventLoop) -> HTTPAnswer {
    peer.prove()
    guard peer.isServed || responder.answersAlways(request) else { return now(StandardResponse.full, to: request) }
    guard request.method != .options else { return now(responder.options(of: request), to: request) }
    let answer = responder.respond(to: request, on: eventLoop)
    guard case .now(let response) = answer.kind else { return answer }
    if peer.polls(response) {
      traffic.add(.refusedPolls)
      return now(StandardResponse.polled, to: request)
    }
    if let admission = answer.admission, response.status.code < 400,
      let refusal = admission.refusal(of: ClientID(request.client, request.fields))
    {
      return now(refusal, to: request)
    }
    return answer.saying(origins.applied(to: response, of: request))
  }

  private func now(_ response: HTTPResponse, to request: HTTPRequest) -> HTTPAnswer {
    .now(origins.applied(to: response, of: request))
  }

  /// What the viewer hears of an answer that was `later`.
  func response(
    of result: Result<HTTPResponse, any Error>, to request: HTTPRequest, countedBy admission: (any Admission)?
  ) -> HTTPResponse {
    switch result {
    case .success(let response):
      let admitted = admission?.admit(ClientID(request.client, request.fields), to: response) ?? response
      return origins.applied(to: admitted, of: request)
    case .failure(let error):
      logger.error("request failed", metadata: ["path": "\(request.target.path)", "error": "\(error)"])
      return origins.applied(to: StandardResponse.failed, of: request)
    }
  }

  /// The same for what depends on the target alone, which players share.
  func open(_ response: HTTPResponse) -> HTTPResponse { origins.applied(to: response, of: SharedResponse.plainRequest) }

  /// One line a response, for whoever looks that closely.
  func log(_ response: HTTPResponse, to request: HTTPRequest, of peer: HTTPPeer) {
    logger.debug(
      "\(response.status.code)",
      metadata: ["peer": "\(peer.address)", "method": "\(request.method)", "path": "\(request.target.path)"])
  }
}

/// A connection between its start and its end, whatever is spoken on it.
protocol HTTPConnection: LoopContext.Member {
  var peer: HTTPPeer { get }
  /// The server stops: ends the connection as soon as nothing is under way on it.
  func stop()
  /// Closes now, whatever is under way.
  func close()
}
