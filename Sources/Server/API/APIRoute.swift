internal import HTTP

/// One thing that may be asked of the API: by which method, at which address, by whom, and what answers.
struct APIRoute: Sendable {
  enum Access: String, Sendable {
    case everybody
    /// Whoever sends the admin token (`AdminGate`).
    case admin
  }

  typealias Handler = @Sendable (APIRoutes, APIRequest) -> HTTPAnswer

  /// One of them.
  let method: AllowedMethods
  /// `{stream}` stands for any segment, `start|stop` for one of its words.
  let pattern: String
  let access: Access
  /// What is asked for stands in the request's body.
  let takesBody: Bool
  /// For docs/http.md: what is answered, or done.
  let summary: String
  let handler: Handler

  init(
    _ method: AllowedMethods, _ pattern: String, _ access: Access, takesBody: Bool = false, _ summary: String,
    _ handler: @escaping Handler
  ) {
    (self.method, self.pattern, self.access, self.takesBody) = (method, pattern, access, takesBody)
    (self.summary, self.handler) = (summary, handler)
  }

  /// For everybody.
  init(_ method: AllowedMethods, _ pattern: String, _ summary: String, _ handler: @escaping Handler) {
    self.init(method, pattern, .everybody, summary, handler)
  }
}
