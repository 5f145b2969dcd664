internal import Delivery
internal import HTTP
internal import NIOCore
internal import NIOHTTP1
internal import Publishing

/// The pages and their files.
package struct PageRoutes {
  let files: WebFiles
  let sharing: PageSharing

  package init(files: WebFiles, sharing: PageSharing) {
    (self.files, self.sharing) = (files, sharing)
  }

  func respond(to request: HTTPRequest, for viewer: Viewer, on eventLoop: any EventLoop) -> HTTPAnswer {
    let path = request.path
    switch (path.first, path.count) {
    case (nil, _): return files.answer(["pages", "index.html"], to: request, on: eventLoop)
    case ("recordings", 1): return files.answer(["pages", "recordings.html"], to: request, on: eventLoop)
    case ("publish", 1): return files.answer(WebFiles.publishPage, to: request, on: eventLoop)
    case ("publish", 2):
      guard StreamName(path[1]) != nil else { return .now(Self.noName.response) }
      return files.answer(WebFiles.publishPage, to: request, on: eventLoop)
    case ("favicon.ico", 1): return files.answer(["ui", "favicon.svg"], to: request, on: eventLoop)
    case ("watch", 2), ("embed", 2):
      if let name = StreamName(path[1]), let page = StreamPage(rawValue: path[0]) {
        let head = sharing.head(of: page, of: name, isGuarded: viewer.isGuarded(name))
        return files.answer(["pages", "\(page.rawValue).html"], to: request, on: eventLoop, with: head)
      }
      return .now(Self.noName.response)
    case ("web", 2...): return files.answer(Array(path.dropFirst()), to: request, on: eventLoop)
    default:
      return .now(Problem.notFound("There is nothing at this address.", help: "The streams are listed at /.").response)
    }
  }

  private static let noName = Problem(
    .invalidStreamName, "No stream can have that name: a name is \(StreamName.grammar).",
    help: "The streams are listed at /.")

  /// Replaces a 404 for programs by a page if a browser requests it. Media addresses keep their 404, since caches store one
  /// response for all clients.
  func guiding(_ request: HTTPRequest, on eventLoop: any EventLoop, _ answer: HTTPAnswer) -> HTTPAnswer {
    guard request.path.first != "live" else { return answer }
    return replacing(.notFound, by: WebFiles.notFoundPage, request, on: eventLoop, answer)
  }

  /// Replaces the refusal of a viewer by a page, if a browser requests the page or the player of a stream. `answer` is that of
  /// `ViewerGate`.
  func explaining(_ request: HTTPRequest, on eventLoop: any EventLoop, _ answer: HTTPAnswer) -> HTTPAnswer {
    guard request.path.count == 2, StreamPage(rawValue: request.path[0]) != nil, !answer.isAdmitted else {
      return answer
    }
    return replacing(.forbidden, by: WebFiles.noAccessPage, request, on: eventLoop, answer)
  }

  private func replacing(
    _ status: HTTPResponseStatus, by page: String, _ request: HTTPRequest, on eventLoop: any EventLoop,
    _ answer: HTTPAnswer
  ) -> HTTPAnswer {
    switch answer.kind {
    case .now(let response) where response.status == status:
      return replaced(response, by: page, request, on: eventLoop)
    case .later(let future) where answer.sharing == nil:
      return .later(
        future.flatMap { response in
          guard response.status == status else { return eventLoop.makeSucceededFuture(response) }
          return replaced(response, by: page, request, on: eventLoop).response(on: eventLoop)
        })
    default: return answer
    }
  }

  private func replaced(
    _ response: HTTPResponse, by page: String, _ request: HTTPRequest, on eventLoop: any EventLoop
  ) -> HTTPAnswer {
    if request.wantsPage {
      // A wrong address in somebody's frame shows the page there, too.
      let isInFrame = request.path.first == StreamPage.embed.rawValue
      let head = isInFrame ? PageHead(tags: nil, frameAncestors: sharing.frameAncestors) : nil
      return files.answer([page], to: request, on: eventLoop, with: head)
    }
    var response = response
    // Browsers get a page at the same address.
    response.headers.append(HeaderField("Vary", "Accept"))
    return .now(response)
  }
}
