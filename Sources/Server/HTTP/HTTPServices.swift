internal import Base
internal import Logging
internal import NIOCore
internal import NIOHTTP1

/// What the connections of a listener share, and how they process a request. An object, so that a connection has no copy.
final class HTTPServices: Sendable {
  let responder: any HTTPResponder
  /// The tokens that were verified; nil where none is.
  let passes: (any ViewerPasses)?
  let limits: HTTPLimits
  /// Proxies whose statements about client addresses are trusted.
  let proxies: TrustedProxies
  let policy: Reloadable<HTTPPolicy>
  /// The names of the certificate.
  let certificateHosts: @Sendable () -> AllowedHosts?
  let limiter: ConnectionLimiter
  let traffic: HTTPTraffic
  let pools: SendingPools
  let logger: Logger
  /// What paths begin with for clients (`PublicURL.path`).
  let prefix: String

  init(
    responder: any HTTPResponder, passes: (any ViewerPasses)?, limits: HTTPLimits, proxies: TrustedProxies,
    policy: Reloadable<HTTPPolicy>, certificateHosts: @escaping @Sendable () -> AllowedHosts? = { nil },
    limiter: ConnectionLimiter, traffic: HTTPTraffic, pools: SendingPools, logger: Logger,
    prefix: String = ""
  ) {
    (self.responder, self.passes, self.limits, self.proxies) = (responder, passes, limits, proxies)
    (self.policy, self.certificateHosts) = (policy, certificateHosts)
    (self.limiter, self.traffic) = (limiter, traffic)
    (self.pools, self.logger, self.prefix) = (pools, logger, prefix)
  }

  var origins: CrossOrigin { policy.now.origins }

  /// Why a request is refused for the host that it names; nil if it is not. What a `ResponseTable` has is for all names, so
  /// requests that are answered from there need not be asked.
  func refusal(ofHostOf head: RequestHead, _ request: HTTPRequest) -> Problem? {
    guard !request.source.isControl, !request.source.isProxy else { return nil }
    let target = head.target.readableBytesUInt8Span
    // RFC 9112 §3.2.2: it counts in place of the field.
    if let range = RequestTarget.host(in: target) { return refusal(of: target.extracting(range), request) }
    var problem: Problem?
    head.fields.forEach { name, value in
      guard name.count == 4, name.isField("host") else { return true }
      problem = refusal(of: value, request)
      return false
    }
    return problem
  }

  private func refusal(of host: Span<UInt8>, _ request: HTTPRequest) -> Problem? {
    guard !policy.now.hosts.allow(host, or: certificateHosts), !responder.answersUnderAnyName(request) else {
      return nil
    }
    return AllowedHosts.refusal(of: host)
  }

  /// The response to a complete request. It comes from the routes, except for OPTIONS, a full server and repeated polls. Called
  /// on `eventLoop`.
  func answer(to request: HTTPRequest, of peer: HTTPPeer, on eventLoop: any EventLoop) -> HTTPAnswer {
    peer.requestArrived()
    guard peer.isServed || (peer.mayOnlyProbe ? responder.isProbe(request) : responder.answersAlways(request)) else {
      return now(peer.refusal, to: request)
    }
    guard request.method != .options else { return now(responder.options(of: request), to: request) }
    let answer = responder.respond(to: request, on: eventLoop)
    guard case .now(let response) = answer.kind else { return answer }
    if peer.polls(response.playlist) {
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

  /// The response for the viewer, from the result of a `later` response.
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

  /// The same for shared responses, which depend only on the target.
  func open(_ response: HTTPResponse) -> HTTPResponse { origins.applied(to: response, of: SharedResponse.plainRequest) }

  /// Logs one line per response, at level debug.
  func log(_ response: HTTPResponse, to request: HTTPRequest, of peer: HTTPPeer) {
    logger.debug(
      "\(response.status.code)",
      metadata: ["peer": "\(peer.address)", "method": "\(request.method)", "path": "\(request.target.path)"])
  }
}

/// An open connection of any HTTP version.
protocol HTTPConnection: LoopContext.Member {
  var peer: HTTPPeer { get }
  /// Ends the connection when nothing is under way, because the server stops.
  func stop()
  /// Closes the connection.
  func close()
  /// The same without waiting for the client. What it has not taken is dropped.
  func closeAtOnce()
}
