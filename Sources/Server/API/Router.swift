package import Delivery
package import HTTP
package import NIOCore

/// Chooses the routes by the first segment of the path.
package struct Router: HTTPResponder {
  let live: LiveRoutes
  let ingest: IngestRoutes
  let whip: WHIPRoutes
  let whep: WHEPRoutes
  let api: APIRoutes
  let recordings: RecordingRoutes
  let replay: ReplayRoutes
  let pages: PageRoutes
  let metrics: MetricsRoutes
  /// Checks whether a request may have a body.
  let gate: AdminGate
  /// Checks whether a request may read what it is for.
  let viewers: ViewerGate

  package init(
    live: LiveRoutes, ingest: IngestRoutes, whip: WHIPRoutes, whep: WHEPRoutes, api: APIRoutes,
    recordings: RecordingRoutes, replay: ReplayRoutes, pages: PageRoutes, metrics: MetricsRoutes, gate: AdminGate,
    viewers: ViewerGate
  ) {
    (self.live, self.ingest, self.whip, self.whep, self.api) = (live, ingest, whip, whep, api)
    (self.recordings, self.replay, self.pages, self.metrics, self.gate) = (recordings, replay, pages, metrics, gate)
    self.viewers = viewers
  }

  package func respond(to request: HTTPRequest, on eventLoop: any EventLoop) -> HTTPAnswer {
    pages.explaining(
      request, on: eventLoop, viewers.admit(request, on: eventLoop) { answer(request, for: $0, on: eventLoop) })
  }

  private func answer(_ request: HTTPRequest, for viewer: Viewer, on eventLoop: any EventLoop) -> HTTPAnswer {
    if request.path.first == "api" { return answerOfAPI(request, for: viewer, on: eventLoop) }
    if IngestRoutes.isAsked(by: request) { return .now(IngestRoutes.empty) }
    if WHIPRoutes.isAsked(by: request) { return whip.respond(to: request, on: eventLoop) }
    if WHEPRoutes.isAsked(by: request) { return whep.respond(to: request, on: eventLoop) }
    if let refusal = PublicAddress.refusal(of: request) { return .now(refusal.response) }
    if let place = Redirection.place(of: request) {
      return .now(.redirect(to: request.base + place.address, place.kind))
    }
    return pages.guiding(request, on: eventLoop, route(request, for: viewer, on: eventLoop))
  }

  package func options(of request: HTTPRequest) -> HTTPResponse {
    if WHIPRoutes.isAsked(by: request) || WHEPRoutes.isAsked(by: request) { return WebRTCSessions.options(of: request) }
    guard request.path.first == "api" else {
      return PublicAddress.methods(of: request).map { StandardResponse.preflight(allowing: $0) }
        ?? Problem.nothingHere.response
    }
    guard let (address, _) = APITable.find(request.path) else { return APITable.unknown(request.path).response }
    return StandardResponse.preflight(allowing: address.methods)
  }

  /// Probes, metrics and commands are served even by a full server.
  package func answersAlways(_ request: HTTPRequest) -> Bool {
    isProbe(request) || request.path == ["metrics"] || request.source.isControl
  }

  package func isProbe(_ request: HTTPRequest) -> Bool {
    request.path.count == 1 && ["healthz", "readyz"].contains(request.path.first)
  }

  package func answersUnderAnyName(_ request: HTTPRequest) -> Bool {
    AnyName(authorizer: gate.authorizer, viewers: viewers).answers(request)
  }

  package func refusal(ofBodyOf request: HTTPRequest) -> Problem? {
    if IngestRoutes.isAsked(by: request) { return IngestRoutes.refusal(of: request) }
    if WHIPRoutes.isAsked(by: request) { return whip.refusal(ofBodyOf: request) }
    if WHEPRoutes.isAsked(by: request) { return whep.refusal(ofBodyOf: request) }
    guard request.path.first == "api" else { return PublicAddress.refusal(of: request) ?? Problem.bodyTooLarge(0) }
    switch APITable.admit(request, gate, .beforeBody) {
    case .failure(let refusal): return refusal.problem
    case .success(let (route, _)): return route.takesBody ? nil : Problem.bodyTooLarge(0)
    }
  }

  package func takesArrivingBody(of request: HTTPRequest) -> Bool {
    IngestRoutes.isAsked(by: request) || WHIPRoutes.isOffer(request) || WHEPRoutes.isOffer(request)
  }

  package func arrivingBody(of request: HTTPRequest) -> (any ArrivingBody)? {
    if WHIPRoutes.isOffer(request) { return whip.body(of: request) }
    if WHEPRoutes.isOffer(request) { return whep.body(of: request) }
    return IngestRoutes.isAsked(by: request) ? ingest.body(of: request) : nil
  }

  private func route(_ request: HTTPRequest, for viewer: Viewer, on eventLoop: any EventLoop) -> HTTPAnswer {
    // Programs request these addresses without following redirections.
    guard !request.target.endsWithSlash || isProbe(request) || [["metrics"], ["time"]].contains(request.path) else {
      return .now(Problem.nothingHere.response)
    }
    switch request.path.first {
    case "live": return live.respond(to: request, on: eventLoop)
    case "recordings" where request.path.count > 3: return replay.respond(to: request, on: eventLoop)
    case "recordings" where request.path.count > 1: return recordings.respond(to: request, on: eventLoop)
    case "time" where request.path.count == 1: return .now(api.time)
    case "healthz" where request.path.count == 1: return .now(metrics.health)
    case "readyz" where request.path.count == 1: return .now(metrics.readiness)
    case "metrics" where request.path.count == 1: return metrics.metrics(on: eventLoop)
    default: return pages.respond(to: request, for: viewer, on: eventLoop)
    }
  }

  private func answerOfAPI(
    _ request: HTTPRequest, for viewer: Viewer, on eventLoop: any EventLoop
  ) -> HTTPAnswer {
    switch APITable.admit(request, gate) {
    case .failure(let refusal): .now(refusal.problem.response)
    case .success(let (route, values)):
      admitted(
        route.handler(api, APIRequest(http: request, viewer: viewer, values: values, eventLoop: eventLoop)),
        to: route, request)
    }
  }

  /// What reads of administrators began ends with their token. What changes something is carried through.
  private func admitted(_ answer: HTTPAnswer, to route: APIRoute, _ request: HTTPRequest) -> HTTPAnswer {
    guard request.isRead, let scope = route.access.scope, let pass = gate.pass(of: request, needing: scope) else {
      return answer
    }
    return answer.admitted(by: pass, rule: nil, isPrivate: false)
  }
}
