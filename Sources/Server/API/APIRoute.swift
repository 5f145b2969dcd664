internal import HTTP

/// A route of the API: method, address, access and handler.
struct APIRoute: Sendable {
  enum Access: String, Sendable {
    case open
    /// Clients that send a token or key with this scope (`AdminGate`).
    case read, operate, admin

    /// Nil where no token is needed.
    var scope: AdminScope? { AdminScope(rawValue: rawValue) }
  }

  typealias Handler = @Sendable (APIRoutes, APIRequest) -> HTTPAnswer

  /// Contains a single method.
  let method: AllowedMethods
  /// `{stream}` stands for any segment, `start|stop` for one of its words.
  let pattern: String
  let access: Access
  /// The request has a body.
  let takesBody: Bool
  /// For docs/http.md: what is returned, or done.
  let summary: String
  let handler: Handler

  init(
    _ method: AllowedMethods, _ pattern: String, _ access: Access, takesBody: Bool = false, _ summary: String,
    _ handler: @escaping Handler
  ) {
    (self.method, self.pattern, self.access, self.takesBody) = (method, pattern, access, takesBody)
    (self.summary, self.handler) = (summary, handler)
  }

  /// A route open to every client.
  init(_ method: AllowedMethods, _ pattern: String, _ summary: String, _ handler: @escaping Handler) {
    self.init(method, pattern, .open, summary, handler)
  }
}
