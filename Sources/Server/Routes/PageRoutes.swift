internal import Ingest
internal import NIOCore

/// The pages and their files.
struct PageRoutes {
  let files: WebFiles

  func respond(to request: HTTPRequest, on eventLoop: any EventLoop) -> HTTPAnswer {
    let path = request.path
    switch (path.first, path.count) {
    case (nil, _): return files.answer(["index.html"], to: request, on: eventLoop)
    case ("recordings", 1): return files.answer(["recordings.html"], to: request, on: eventLoop)
    case ("favicon.ico", 1): return files.answer(["favicon.svg"], to: request, on: eventLoop)
    case ("watch", 2) where StreamName(path[1]) != nil:
      return files.answer(["watch.html"], to: request, on: eventLoop)
    case ("web", 2): return files.answer([path[1]], to: request, on: eventLoop)
    default:
      return .now(Problem.notFound("There is nothing at this address.", help: "The streams are listed at /.").response)
    }
  }
}
