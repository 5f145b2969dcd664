internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// What is the same for all connections of a listener, and what all of them do with a request.
struct HTTPServices: Sendable {
  let responder: any HTTPResponder
  let limits: HTTPLimits
  let census: ConnectionCensus
  let traffic: HTTPTraffic
  let pool: NIOThreadPool
  let logger: Logger

  /// What is answered to a whole request: by the routes, unless it is OPTIONS, the server is full, or the
  /// connection asks for the same again and again. On `eventLoop`.
  func answer(to request: HTTPRequest, of peer: HTTPPeer, on eventLoop: any EventLoop) -> HTTPAnswer {
    peer.prove()
    guard peer.isServed || responder.answersAlways(request) else { return .now(FixedAnswer.full) }
    guard request.method != .options else { return .now(responder.options(of: request)) }
    let answer = responder.respond(to: request, on: eventLoop)
    if case .now(let response, _) = answer, peer.polls(response) {
      traffic.add(.refusedPolls)
      return .now(FixedAnswer.polled)
    }
    return answer
  }

  /// What the viewer hears of an answer that was `later`.
  func response(of result: Result<HTTPResponse, any Error>, to request: HTTPRequest) -> HTTPResponse {
    switch result {
    case .success(let response): return response
    case .failure(let error):
      logger.error("request failed", metadata: ["path": "\(request.target.path)", "error": "\(error)"])
      return FixedAnswer.failed
    }
  }

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
