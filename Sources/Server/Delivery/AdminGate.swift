package import Control
package import HTTP
internal import NIOHTTP1
package import Publishing

/// Checks whether a request may administer. It must carry an admin token, or a key with a scope, as a bearer token (RFC 6750
/// §2.1), and must not come from a page of another origin. Without any, no request may, not even from this machine.
package struct AdminGate: Sendable {
  package let authorizer: Authorizer
  package let attempts: AdminAttempts

  package init(authorizer: Authorizer, attempts: AdminAttempts) {
    (self.authorizer, self.attempts) = (authorizer, attempts)
  }

  /// Somebody may administer over HTTP.
  package var isOpen: Bool { authorizer.hasAdministrators }

  /// When a request is judged.
  package enum Moment: Sendable {
    /// Before its body is read. A token whose key has to be fetched is judged later.
    case beforeBody
    /// Before it is answered.
    case beforeAnswer
  }

  /// Why the request is refused; nil if it is allowed. Reveals nothing about the requested resource.
  ///
  /// - Parameters:
  ///   - scope: what the bearer must be allowed to do.
  ///   - stream: it is enough that the bearer may record this one; nil where it is not.
  package func refusal(
    of request: HTTPRequest, needing scope: AdminScope = .operate, orRecording stream: StreamName? = nil,
    _ moment: Moment = .beforeAnswer
  ) -> Problem? {
    // The system has checked the peer.
    if request.source.isControl { return nil }
    guard isOpen else {
      return Problem(
        .readOnly, "This server was started without an admin token.",
        help: "Start it with --admin-token or WEIR_ADMIN_TOKEN to change anything over HTTP.")
    }
    guard Self.isOwnOrigin(request) else {
      return Problem(
        .otherOrigin, "Only this server's own pages may change anything.",
        help: "Send the request without an Origin field, or from a page of this server.")
    }
    let fields = request.headers("Authorization")
    guard !fields.isEmpty else {
      return Self.unauthorized(.tokenMissing, "The request has no admin token.", challenge: #"Bearer realm="weir""#)
    }
    let client = request.client
    if let seconds = attempts.pause(of: client) { return Self.tooMany(retryAfter: seconds) }
    let given = fields.count == 1 ? Self.bearer(fields[0]).map { Secret($0) } : nil
    if moment == .beforeBody, let given, authorizer.needsKeys(of: given) { return nil }
    guard let given, let granted = authorizer.scope(of: given, orRecording: stream)
    else {
      attempts.fail(client)
      return Self.unauthorized(
        .tokenWrong, "The admin token is wrong.", challenge: #"Bearer realm="weir", error="invalid_token""#)
    }
    guard granted >= scope else {
      return Problem(
        .scopeTooSmall, "This token has the scope \(granted.rawValue), and \(scope.rawValue) is needed.",
        help: "Use a token with the scope \(scope.rawValue).",
        headers: [HeaderField("WWW-Authenticate", #"Bearer realm="weir", error="insufficient_scope""#)])
    }
    return nil
  }

  /// What admits a request to a response without an end, as long as its bearer has the scope. Nil for commands of this machine.
  package func pass(of request: HTTPRequest, needing scope: AdminScope) -> (any ViewerPass)? {
    guard !request.source.isControl, let field = request.headers("Authorization").first, let token = Self.bearer(field)
    else { return nil }
    return AdminPass(authorizer: authorizer, secret: Secret(token), scope: scope)
  }

  /// RFC 6585 §4.
  private static func tooMany(retryAfter seconds: Int) -> Problem {
    Problem(
      .tooManyWrongTokens, "This address has sent too many wrong admin tokens.", help: "Try again in \(seconds) s.",
      retryAfter: seconds)
  }

  private static func unauthorized(_ kind: ProblemKind, _ detail: String, challenge: String) -> Problem {
    Problem(
      kind, detail, help: "Send the admin token: Authorization: Bearer TOKEN.",
      headers: [HeaderField("WWW-Authenticate", challenge)])
  }

  /// The token of `Bearer TOKEN`; the scheme's name is of any case (RFC 9110 §11.1).
  static func bearer(_ field: String) -> Substring? {
    let parts = field.split(separator: " ", maxSplits: 1)
    guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
    return parts[1]
  }

  /// A request without Origin comes from no page. Behind a proxy that terminates TLS without saying so, the page's origin is
  /// https although the connection is not.
  static func isOwnOrigin(_ request: HTTPRequest) -> Bool {
    let origins = request.headers("Origin")
    guard !origins.isEmpty else { return true }
    guard origins.count == 1, let host = request.header("Host"), !host.isEmpty else { return false }
    let schemes = request.isSecure.map { [$0 ? "https" : "http"] } ?? ["http", "https"]
    return schemes.contains { "\($0)://\(host)".lowercased() == origins[0].lowercased() }
  }
}

/// An admin token or key, as long as it is known with its scope.
private final class AdminPass: ViewerPass {
  private let authorizer: Authorizer
  private let secret: Secret
  private let scope: AdminScope

  init(authorizer: Authorizer, secret: Secret, scope: AdminScope) {
    (self.authorizer, self.secret, self.scope) = (authorizer, secret, scope)
  }

  var holds: Bool { authorizer.scope(of: secret).map { $0 >= scope } ?? false }
}
