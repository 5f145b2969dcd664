internal import Base
internal import NIOCore
package import NIOHTTP1
internal import Storage

/// An error for a client (RFC 9457 `application/problem+json`): what failed, with which value and why, and what to do.
package struct Problem: Sendable {
  package var kind: ProblemKind
  /// The value and the reason.
  package var detail: String
  /// What to do; nil when there is nothing to do.
  package var help: String?
  package var cache: CachePolicy
  package var headers: [HeaderField]

  package var status: HTTPResponseStatus { kind.status }

  /// - Parameters:
  ///   - cache: by default that of the status: what does not exist may exist a second later.
  ///   - retryAfter: in seconds.
  package init(
    _ kind: ProblemKind, _ detail: String, help: String? = nil, cache: CachePolicy? = nil, retryAfter: Int? = nil,
    headers: [HeaderField] = []
  ) {
    self.kind = kind
    self.detail = detail
    self.help = help
    self.cache = cache ?? (kind.status == .notFound ? .missing : .never)
    self.headers = headers + (retryAfter.map { [HeaderField("Retry-After", String($0))] } ?? [])
  }

  package var response: HTTPResponse {
    let help = help.map { #","help":\#(LogText.json($0))"# } ?? ""
    let text =
      #"{"type":"about:blank","status":\#(status.code),"code":\#(LogText.json(kind.code)),"#
      + #""title":\#(LogText.json(kind.title)),"detail":\#(LogText.json(detail))\#(help)}"#
    return HTTPResponse(
      status: status,
      headers: [
        HeaderField("Content-Type", ContentType.problem.rawValue), HeaderField("Cache-Control", cache.value),
      ] + headers,
      body: .pieces([.bytes(ByteBuffer(string: text))]))
  }

  /// No resource at this path.
  package static func notFound(_ detail: String, help: String? = nil) -> Problem {
    Problem(.nothingHere, detail, help: help)
  }

  package static let nothingHere = Problem.notFound("There is nothing at this address.")

  /// A stream without a complete segment yet.
  package static func notYet(_ stream: some CustomStringConvertible) -> Problem {
    Problem(
      .notYet, "The stream \"\(stream)\" has a publisher, but no complete segment yet.",
      help: "Try again in a second.", retryAfter: 1)
  }

  /// RFC 9110 §15.5.6: the response names the allowed methods.
  package static func methodNotAllowed(allow: String = "GET, HEAD, OPTIONS") -> Problem {
    Problem(.methodNotAllowed, "This address allows \(allow).", headers: [HeaderField("Allow", allow)])
  }

  /// No room for another viewer or connection; `retryAfter` in seconds.
  package static func full(_ kind: ProblemKind, _ detail: String, retryAfter: Int = 5) -> Problem {
    Problem(kind, detail, help: "Try again in \(retryAfter) seconds.", retryAfter: retryAfter)
  }

  /// The server has no descriptor for another file.
  package static var tooManyFiles: Problem {
    full(.tooManyFiles, "The limit of recordings that are read at a time is reached.")
  }

  /// A disk, or a file on it, cannot be read.
  package static func unreadable(_ detail: String) -> Problem {
    Problem(.notReadable, "A file on disk cannot be read: \(detail).", retryAfter: 5)
  }

  /// The body of a request exceeds `limit` bytes.
  package static func bodyTooLarge(_ limit: Int) -> Problem {
    limit == 0
      ? Problem(.bodyNotAllowed, "This request must have no body.")
      : Problem(.bodyTooLarge, "The body of a request may have at most \(limit) bytes.")
  }

  package static func badRequest(_ detail: String, help: String? = nil) -> Problem {
    Problem(.badRequest, detail, help: help)
  }
}
