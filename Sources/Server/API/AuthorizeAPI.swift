internal import Control
package import Delivery
internal import HTTP
internal import NIOCore
internal import NIOHTTP1

/// `/api/v1/authorize`: whether a viewer may have what an address names, for caches that answer in weir's place.
package struct AuthorizeAPI {
  let gate: ViewerGate
  /// How long a cache may go by the answer, in seconds.
  let recheck: @Sendable () -> Int64
  /// Whether the API has an address.
  let isOfAPI: @Sendable ([String]) -> Bool

  package init(
    gate: ViewerGate, recheck: @escaping @Sendable () -> Int64, isOfAPI: @escaping @Sendable ([String]) -> Bool
  ) {
    (self.gate, self.recheck, self.isOfAPI) = (gate, recheck, isOfAPI)
  }

  /// The address stands in the field X-Original-URI, or in the query as `path`. 204, or a refusal as the address itself has it. A
  /// cache goes by the answer for all that it takes for the same stream. So an address of any other form is refused.
  func answer(_ request: APIRequest) -> HTTPAnswer {
    guard let address = request.http.header("X-Original-URI") ?? request.http.query("path"), !address.isEmpty else {
      return .now(
        Problem(.malformedQuery, "There is no address to decide on.", help: "Send it: ?path=/~TOKEN/live/NAME/.")
          .response)
    }
    let named = PathPrefix.removed(request.http.prefix, from: ByteBuffer(string: address))
    let parts = TokenPrefix.split(named)
    guard let target = try? RequestTarget(parsing: String(buffer: parts?.rest ?? named)) else {
      return .now(Problem(.malformedQuery, "The address to decide on is malformed.").response)
    }
    guard StreamResource.isOne(target, isOfAPI: isOfAPI) else {
      return .now(
        Problem(
          .viewerNotAllowed, "The address to decide on is not one thing of one stream.",
          help: "Ask about /live/NAME/, or about the address of something of a stream, and leave it encoded."
        ).response)
    }
    let asked = HTTPRequest(
      method: .get, target: target, fields: request.http.fields, source: request.http.source, token: parts?.token)
    return gate.admit(asked, on: request.eventLoop) { viewer in
      let recheck = recheck()
      let seconds = viewer.tokens.map { $0.seconds(atMost: recheck) }.min() ?? recheck
      return .now(
        HTTPResponse(
          status: .noContent,
          headers: [
            HeaderField("Cache-Control", CachePolicy.verdict(seconds: seconds).value),
            HeaderField("Vary", "X-Original-URI, Authorization"),
          ]))
    }
  }
}
