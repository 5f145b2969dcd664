internal import Answers
internal import Control
internal import Delivery
internal import HTTP

/// A route of the API: method, address, access, handler, and what the API's description (`OpenAPIDocument`) says about it.
struct APIRoute: Sendable {
  enum Access: String, Sendable {
    case open
    /// Clients that send a token or key with this scope (`AdminGate`).
    case read, operate, admin
    /// Those with the scope operate, and those that may record the stream of the address.
    case record

    /// Nil where no token is needed.
    var scope: AdminScope? { self == .record ? .operate : AdminScope(rawValue: rawValue) }
  }

  typealias Handler = @Sendable (APIRoutes, APIRequest) -> HTTPAnswer

  /// Contains a single method.
  let method: AllowedMethods
  /// `{stream}` stands for any segment, `start|stop` for one of its words.
  let pattern: String
  let access: Access
  /// For docs/http.md: what is returned, or done.
  let summary: String
  /// The body of a successful response.
  let result: APIResult
  let query: [APIParameter]
  /// The body of the request; nil if it must have none.
  let body: APIBody?
  /// The causes of its own refusals. Those of the access, of the body and of HTTP are added by `OpenAPIDocument`.
  let problems: [ProblemKind]
  let handler: Handler

  var takesBody: Bool { body != nil }

  init(
    _ method: AllowedMethods, _ pattern: String, _ access: Access, _ summary: String, gives result: APIResult,
    query: [APIParameter] = [], body: APIBody? = nil, problems: [ProblemKind] = [], _ handler: @escaping Handler
  ) {
    (self.method, self.pattern, self.access, self.summary) = (method, pattern, access, summary)
    (self.result, self.body) = (result, body)
    if case .state = result {
      (self.query, self.problems) = (query + [APIAction.parameter], problems + [.malformedQuery])
    } else {
      (self.query, self.problems) = (query, problems)
    }
    self.handler = handler
  }

  /// A route open to every client.
  init(
    _ method: AllowedMethods, _ pattern: String, _ summary: String, gives result: APIResult,
    query: [APIParameter] = [], problems: [ProblemKind] = [], _ handler: @escaping Handler
  ) {
    self.init(method, pattern, .open, summary, gives: result, query: query, problems: problems, handler)
  }
}
