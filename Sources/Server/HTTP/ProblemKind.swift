package import NIOHTTP1

/// The cause of a problem: its code for programs, and the status and title that follow from it. Codes never change their meaning.
/// docs/http.md lists all of them.
package struct ProblemKind: Sendable, Hashable {
  /// Lower-case words with hyphens.
  package let code: String
  package let status: HTTPResponseStatus
  package let title: String
  /// The cause, for docs/http.md and the API's description.
  package let meaning: String

  package init(_ code: String, _ status: HTTPResponseStatus, _ title: String, _ meaning: String) {
    (self.code, self.status, self.title, self.meaning) = (code, status, title, meaning)
  }

  package static func == (a: ProblemKind, b: ProblemKind) -> Bool { a.code == b.code }

  package func hash(into hasher: inout Hasher) { hasher.combine(code) }
}

/// The causes that the HTTP layer knows.
extension ProblemKind {
  package static let nothingHere = ProblemKind("nothing-here", .notFound, "Not found", "Nothing is at this address.")
  package static let badRequest = ProblemKind(
    "bad-request", .badRequest, "Bad request", "The request has no meaning for its address.")
  package static let malformedRequest = ProblemKind(
    "malformed-request", .badRequest, "Bad request", "The bytes are no HTTP request.")
  package static let malformedAddress = ProblemKind(
    "malformed-address", .badRequest, "Bad request",
    "The address is malformed, or no name can have one of its segments.")
  package static let methodNotAllowed = ProblemKind(
    "method-not-allowed", .methodNotAllowed, "Method not allowed", "`Allow` names the methods of the address.")
  package static let bodyTooLarge = ProblemKind(
    "body-too-large", .payloadTooLarge, "Body too large", "The body is larger than the limit.")
  package static let bodyNotAllowed = ProblemKind(
    "body-not-allowed", .payloadTooLarge, "Body too large", "The address takes no body.")
  package static let addressTooLong = ProblemKind(
    "address-too-long", .uriTooLong, "Address too long", "The address is longer than the limit.")
  package static let fieldsTooLarge = ProblemKind(
    "fields-too-large", .requestHeaderFieldsTooLarge, "Request header fields too large",
    "The head of the request is larger than the limit.")
  package static let expectationFailed = ProblemKind(
    "expectation-failed", .expectationFailed, "Expectation failed", "`Expect` has a value other than `100-continue`.")
  package static let tooManyWaiting = ProblemKind(
    "too-many-waiting-requests", .tooManyRequests, "Too many requests at once",
    "The connection has as many waiting requests as it may have.")
  package static let tooManyPolls = ProblemKind(
    "too-many-polls", .tooManyRequests, "Too many requests",
    "The connection repeats a request for an unchanged playlist.")
  package static let failed = ProblemKind(
    "internal-error", .internalServerError, "Failed", "The request failed; the log has the reason.")
  package static let versionNotSupported = ProblemKind(
    "http-version-not-supported", .httpVersionNotSupported, "HTTP version not supported",
    "The server does not speak this version of HTTP.")
  package static let hostNotAllowed = ProblemKind(
    "host-not-allowed", .misdirectedRequest, "Misdirected request", "The request names a host that is not this server.")
  package static let serverFull = ProblemKind(
    "server-full", .serviceUnavailable, "Full", "The server has as many connections as it can serve.")
  package static let tooManyFiles = ProblemKind(
    "too-many-files", .serviceUnavailable, "Full", "The limit of recordings that are read at a time is reached.")
  package static let notReadable = ProblemKind(
    "file-not-readable", .serviceUnavailable, "Not readable", "A file on disk cannot be read.")
  package static let diskNotResponding = ProblemKind(
    "disk-not-responding", .serviceUnavailable, "The disk does not answer",
    "The disk of the recordings is busy or frozen. A change may happen later.")
  package static let passEnded = ProblemKind(
    "token-ended", .forbidden, "Not allowed", "The token of a request that waited has expired or was revoked.")
  package static let notYet = ProblemKind(
    "not-yet", .serviceUnavailable, "Not yet", "The stream has a publisher, but what was requested does not exist yet.")

  package static let ofHTTP: [ProblemKind] = [
    nothingHere, badRequest, malformedRequest, malformedAddress, methodNotAllowed, bodyTooLarge, bodyNotAllowed,
    addressTooLong, fieldsTooLarge, expectationFailed, tooManyWaiting, tooManyPolls, failed, versionNotSupported,
    hostNotAllowed, serverFull, tooManyFiles, notReadable, diskNotResponding, passEnded, notYet,
  ]
}
