internal import HTTP
internal import Ingest
internal import NIOHTTP1

/// Checks whether a request may change things. It must carry the admin token as a bearer token (RFC 6750 §2.1), and must not come
/// from a page of another origin. Without a configured token no request may, not even from this machine.
struct AdminGate: Sendable {
  /// Nil if the server was started without one.
  let token: Secret?
  var attempts = AdminAttempts()

  /// Why the request is refused; nil if it is allowed. Reveals nothing about the requested resource.
  func refusal(of request: HTTPRequest) -> Problem? {
    guard let token else {
      return Problem(
        status: .forbidden, title: "Read-only", detail: "This server was started without an admin token.",
        help: "Start it with --admin-token or WEIR_ADMIN_TOKEN to change anything over HTTP.")
    }
    guard Self.isOwnOrigin(request) else {
      return Problem(
        status: .forbidden, title: "Another origin", detail: "Only this server's own pages may change anything.",
        help: "Send the request without an Origin field, or from a page of this server.")
    }
    let fields = request.headers("Authorization")
    guard !fields.isEmpty else {
      return Self.unauthorized("The request has no admin token.", challenge: #"Bearer realm="weir""#)
    }
    let client = request.client
    if let seconds = attempts.pause(of: client) { return Self.tooMany(retryAfter: seconds) }
    guard fields.count == 1, let given = Self.bearer(fields[0]), Secret(given).matches(token) else {
      attempts.fail(client)
      return Self.unauthorized(
        "The admin token is wrong.", challenge: #"Bearer realm="weir", error="invalid_token""#)
    }
    return nil
  }

  /// RFC 6585 §4.
  private static func tooMany(retryAfter seconds: Int) -> Problem {
    Problem(
      status: .tooManyRequests, title: "Too many wrong tokens",
      detail: "This address has sent too many wrong admin tokens.", help: "Try again in \(seconds) s.",
      headers: [HeaderField("Retry-After", String(seconds))])
  }

  private static func unauthorized(_ detail: String, challenge: String) -> Problem {
    Problem(
      status: .unauthorized, title: "Not authorized", detail: detail,
      help: "Send the admin token: Authorization: Bearer TOKEN.",
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
  private static func isOwnOrigin(_ request: HTTPRequest) -> Bool {
    let origins = request.headers("Origin")
    guard !origins.isEmpty else { return true }
    guard origins.count == 1, let host = request.header("Host"), !host.isEmpty else { return false }
    let schemes = request.isSecure.map { [$0 ? "https" : "http"] } ?? ["http", "https"]
    return schemes.contains { "\($0)://\(host)".lowercased() == origins[0].lowercased() }
  }
}
