internal import NIOCore

/// The first segment of a path decides which routes answer.
struct Router: HTTPResponder {
  let live: LiveRoutes
  let api: APIRoutes
  let recordings: RecordingRoutes
  let replay: ReplayRoutes
  let pages: PageRoutes
  let metrics: MetricsRoutes

  func respond(to request: HTTPRequest, on eventLoop: any EventLoop) -> HTTPAnswer {
    // The API alone has something to change.
    guard request.isRead || request.path.first == "api" else { return .now(Problem.methodNotAllowed().response) }
    switch request.path.first {
    case "live": return live.respond(to: request, on: eventLoop)
    case "api" where request.path.count == 6 && request.path[2] == "recordings" && request.path[5] == "clip":
      return replay.clip(request, on: eventLoop)
    case "api" where request.path.count == 6 && request.path[2] == "recordings" && request.path[5] == "keyframes":
      return replay.keyFrames(request, on: eventLoop)
    case "api": return api.respond(to: request, on: eventLoop)
    case "recordings" where request.path.count > 3: return replay.respond(to: request, on: eventLoop)
    case "recordings" where request.path.count > 1: return recordings.respond(to: request, on: eventLoop)
    case "time" where request.path.count == 1: return .now(api.time)
    case "healthz" where request.path.count == 1: return .now(metrics.health)
    case "readyz" where request.path.count == 1: return .now(metrics.readiness)
    case "metrics" where request.path.count == 1: return metrics.metrics(on: eventLoop)
    default: return pages.respond(to: request, on: eventLoop)
    }
  }
}
