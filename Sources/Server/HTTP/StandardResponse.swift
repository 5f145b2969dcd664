internal import NIOCore
internal import NIOHTTP1

/// Responses of the HTTP layer, independent of the routes.
package enum StandardResponse {
  /// RFC 9110 §15.2.1
  static let goOn = ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n")

  /// The response to OPTIONS for readable addresses. Authorization is not among the fields that other origins may send, since
  /// writes are for pages of this server.
  package static let preflight = HTTPResponse(
    status: .noContent,
    headers: [
      HeaderField("Allow", "GET, HEAD, OPTIONS"),
      HeaderField("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"),
      HeaderField("Access-Control-Allow-Headers", "Range, If-None-Match, If-Range, Content-Type, \(cmcd)"),
      HeaderField("Access-Control-Max-Age", "86400"),
    ])

  /// The same for an address with other methods. Pages of other origins may only read.
  package static func preflight(allowing methods: AllowedMethods) -> HTTPResponse {
    var response = preflight
    response.headers = preflight.headers.compactMap { field in
      switch field.name {
      case "Allow": HeaderField("Allow", methods.description)
      case _ where field.name.hasPrefix("Access-Control-") && !methods.contains(.get): nil
      default: field
      }
    }
    return response
  }

  /// Fields in which players report playback data (CTA-5004 §3.1). The server does not read them.
  private static let cmcd = "CMCD-Object, CMCD-Request, CMCD-Session, CMCD-Status"

  package static let full = Problem.full(.serverFull, "This server has as many connections as it can serve.").response

  package static let addressFull = Problem.full(
    .serverFull, "This address has as many connections as it may have.", retryAfter: 5
  ).response

  /// For a response that was made for one client, where too many wait for clients that do not take them.
  static let crowded = Problem.full(
    .serverFull, "Too many responses wait for clients of this address, or for all clients, that do not take them."
  ).response

  /// RFC 6585 §4.
  static let polled = Problem(
    .tooManyPolls, "This connection repeats a request for a playlist that has not changed.",
    help: "Wait a second, or use a blocking reload with _HLS_msn and _HLS_part.", retryAfter: 1
  ).response

  package static let failed = Problem(
    .failed, "The request failed; the server's log has the reason."
  ).response

  /// The token of a request that waited holds no longer.
  static let passEnded = Problem(
    .passEnded, "The token has expired or was revoked.", help: "Ask its issuer for another one.")

  static let targetTooLong = Problem(
    .addressTooLong, "The address is longer than the limit of this server.")

  static let fieldsTooLarge = Problem(
    .fieldsTooLarge, "The request's head is larger than the limit of this server.")
}
