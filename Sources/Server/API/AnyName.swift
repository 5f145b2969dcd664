internal import Control
internal import Delivery
internal import HTTP
internal import Publishing

/// What is answered under names that are not this server's (`AllowedHosts`).
struct AnyName {
  let authorizer: Authorizer
  let viewers: ViewerGate

  /// Media and the time are public to all origins, and caches, CDNs and probes send names of their own. OPTIONS does nothing, and
  /// comes before a request with a token. A page of another site has no token, no key, and no session that it has begun.
  func answers(_ request: HTTPRequest) -> Bool {
    if request.method == .options || request.isRead && Self.isPublic(request.path) { return true }
    let isOfWHIP = WHIPRoutes.isAsked(by: request)
    // The id of a session is random, and is told to the peer that began it.
    if isOfWHIP || WHEPRoutes.isAsked(by: request), case .session? = WebRTCSessions.Place(request.path) { return true }
    if isOfWHIP || IngestRoutes.isAsked(by: request) { return hasPublishKey(request) }
    return viewers.hasToken(request)
  }

  private static func isPublic(_ path: [String]) -> Bool {
    switch path.first {
    case "live": path.count > 2 && path[2] != "status.json"
    case "time", "healthz", "readyz": path.count == 1
    default: false
    }
  }

  /// Whether a request to publish has a key or token that is known to allow it. Where none is needed, any token that holds will do;
  /// encoders send any text for one then. A wrong key counts as an attempt at guessing: the answer tells it from the right one.
  private func hasPublishKey(_ request: HTTPRequest) -> Bool {
    guard authorizer.isClosed else { return viewers.hasToken(ofField: request, tellsWrong: false) }
    guard request.path.count > 1, let stream = StreamName(request.path[1]), let key = request.publishKey else {
      return false
    }
    let attempts = viewers.attempts
    guard attempts.pause(of: request.client) == nil else { return false }
    if authorizer.knows(key, for: stream) { return true }
    attempts.fail(request.client)
    return false
  }
}
