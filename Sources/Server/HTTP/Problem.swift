internal import Basics
internal import NIOCore
package import NIOHTTP1
internal import Storage

/// An error for a client (RFC 9457 `application/problem+json`): what failed, with which value and why, and what to do.
package struct Problem: Sendable {
  package var status: HTTPResponseStatus
  /// What failed, the same for each occurrence: "No such stream".
  package var title: String
  /// The value and the reason.
  package var detail: String
  /// What to do; nil when there is nothing to do.
  package var help: String?
  package var cache: CachePolicy
  package var headers: [HeaderField]

  package init(
    status: HTTPResponseStatus, title: String, detail: String, help: String? = nil, cache: CachePolicy = .never,
    headers: [HeaderField] = []
  ) {
    self.status = status
    self.title = title
    self.detail = detail
    self.help = help
    self.cache = cache
    self.headers = headers
  }

  package var response: HTTPResponse {
    let help = help.map { #","help":\#(LogText.json($0))"# } ?? ""
    let text =
      #"{"type":"about:blank","status":\#(status.code),"title":\#(LogText.json(title)),"#
      + #""detail":\#(LogText.json(detail))\#(help)}"#
    return HTTPResponse(
      status: status,
      headers: [
        HeaderField("Content-Type", ContentType.problem.rawValue), HeaderField("Cache-Control", cache.value),
      ] + headers,
      body: .pieces([.bytes(ByteBuffer(string: text))]))
  }

  /// No resource at this path.
  package static func notFound(_ detail: String, help: String? = nil) -> Problem {
    Problem(status: .notFound, title: "Not found", detail: detail, help: help, cache: .missing)
  }

  package static let nothingHere = Problem.notFound("There is nothing at this address.")

  /// A stream without a complete segment yet.
  package static func notYet(_ stream: some CustomStringConvertible) -> Problem {
    Problem(
      status: .serviceUnavailable, title: "Not yet",
      detail: "The stream \"\(stream)\" has a publisher, but no complete segment yet.",
      help: "Try again in a second.", headers: [HeaderField("Retry-After", "1")])
  }

  /// RFC 9110 §15.5.6: the response names the allowed methods.
  package static func methodNotAllowed(allow: String = "GET, HEAD, OPTIONS") -> Problem {
    Problem(
      status: .methodNotAllowed, title: "Method not allowed", detail: "This address allows \(allow).",
      headers: [HeaderField("Allow", allow)])
  }

  /// No room for another viewer or connection; `retryAfter` in seconds.
  package static func full(_ detail: String, retryAfter: Int = 5) -> Problem {
    Problem(
      status: .serviceUnavailable, title: "Full", detail: detail, help: "Try again in \(retryAfter) seconds.",
      headers: [HeaderField("Retry-After", String(retryAfter))])
  }

  /// The server has no descriptor for another file.
  package static var tooManyFiles: Problem { full("The limit of recordings that are read at a time is reached.") }

  /// A disk, or a file on it, cannot be read.
  package static func unreadable(_ detail: String) -> Problem {
    Problem(
      status: .serviceUnavailable, title: "Not readable", detail: "A file on disk cannot be read: \(detail).",
      headers: [HeaderField("Retry-After", "5")])
  }

  /// The body of a request exceeds `limit` bytes.
  package static func bodyTooLarge(_ limit: Int) -> Problem {
    Problem(
      status: .payloadTooLarge, title: "Body too large",
      detail: limit == 0 ? "This request must have no body." : "The body of a request may have at most \(limit) bytes.")
  }

  package static func badRequest(_ detail: String, help: String? = nil) -> Problem {
    Problem(status: .badRequest, title: "Bad request", detail: detail, help: help)
  }
}
