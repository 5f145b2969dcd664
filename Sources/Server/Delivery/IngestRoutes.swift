package import HTTP
package import MPEGTS
internal import NIOCore
internal import NIOHTTP1
package import Publishing

/// `POST /live/{stream}/ingest`, and PUT: a transport stream as the endless body of a request. The publish key is a bearer
/// token (RFC 6750 §2.1) or `?key=`. `?program=` chooses one of several programmes, or each.
package struct IngestRoutes {
  package let ingest: TransportIngest

  package init(ingest: TransportIngest) {
    self.ingest = ingest
  }

  /// Whether the request publishes.
  package static func isAsked(by request: HTTPRequest) -> Bool {
    (request.method == .post || request.method == .put) && isPlace(request.path)
  }

  /// Whether it is the address of an upload, whatever is asked of it.
  package static func isPlace(_ path: [String]) -> Bool { path.count == 3 && path[0] == "live" && path[2] == "ingest" }

  /// Why the request cannot publish, also with the right key.
  package static func refusal(of request: HTTPRequest) -> Problem? {
    guard StreamName(request.path[1]) != nil else {
      return Problem(.malformedAddress, "No stream can have that name: a name is \(StreamName.grammar).")
    }
    // A page of another origin could publish with the address of its visitor.
    guard AdminGate.isOwnOrigin(request) else {
      return Problem(
        .otherOrigin, "Only this server's own pages may publish.",
        help: "Send the request without an Origin field, or from a page of this server.")
    }
    let type = request.header("Content-Type")?.split(separator: ";").first?.lowercased()
    guard type == nil || type == "video/mp2t" || type == "application/octet-stream" else {
      return Problem(
        .notMPEGTS,
        "This address takes MPEG transport streams, and the body is of another type.",
        help: "Send Content-Type: video/mp2t.")
    }
    guard request.query("program").map({ ProgramChoice($0) != nil }) ?? true else {
      return Problem.badRequest(
        "program is no number of a programme.", help: "Write ?program= with a number from 1 to 65535, or each.")
    }
    return nil
  }

  /// The response to a request without a body.
  package static let empty = Problem.badRequest(
    "The request has no body, so there is nothing to publish.",
    help: "Send an MPEG transport stream as the body, with Content-Length or in chunks."
  ).response

  package func body(of request: HTTPRequest) -> (any ArrivingBody)? {
    StreamName(request.path[1]).map { TransportBody(of: request, to: $0, ingest) }
  }
}

/// The body of a request that publishes.
private final class TransportBody: ArrivingBody, TransportUploadOwner {
  private let request: HTTPRequest
  private let stream: StreamName
  private let ingest: TransportIngest
  private var upload: TransportUpload?
  private var source: (any ArrivingBodySource)?

  var isMedia: Bool { true }

  init(of request: HTTPRequest, to stream: StreamName, _ ingest: TransportIngest) {
    self.request = request
    self.stream = stream
    self.ingest = ingest
  }

  // MARK: the connection

  func begin(_ source: any ArrivingBodySource, on eventLoop: any EventLoop) {
    self.source = source
    let client = TransportIngest.Client(
      protocolName: request.isSecure == true ? "HTTPS" : "HTTP", address: request.source.peer, client: request.client,
      software: request.header("User-Agent") ?? "")
    upload = ingest.begin(
      stream, key: request.publishKey,
      programs: request.query("program").flatMap { ProgramChoice($0) } ?? .first, of: client, owner: self,
      on: eventLoop)
  }

  func receive(_ bytes: ByteBuffer) { upload?.receive(bytes) }

  func finish() {
    upload?.finish()
    respond(HTTPResponse(status: .noContent, headers: [HeaderField("Cache-Control", CachePolicy.never.value)]))
  }

  func abandon(_ reason: String) {
    source = nil
    upload?.abandon(reason)
    upload = nil
  }

  private func respond(_ response: HTTPResponse) {
    let source = source.take()
    upload = nil
    source?.respond(response)
  }

  // MARK: the upload

  func uploadIsAdmitted() { source?.accept() }
  func uploadIsRefused(_ refusal: TransportUpload.Refusal) { respond(refusal.problem.response) }

  func uploadIsSilent() {
    let source = source.take()
    upload = nil
    source?.cut()
  }

  func uploadIsPaused(_ isPaused: Bool) {
    if isPaused { source?.pause() } else { source?.resume() }
  }
}

extension HTTPRequest {
  /// The key with which the request publishes: a bearer token (RFC 6750 §2.1), or `?key=`.
  package var publishKey: Secret? {
    let bearer = headers("Authorization").first.flatMap { AdminGate.bearer($0) }.map { Secret($0) }
    return bearer ?? query("key").map { Secret($0) }
  }
}

extension TransportUpload.Refusal {
  fileprivate var problem: Problem {
    switch self {
    case .gate(let refusal): refusal.problem
    case .tooManyWaiting:
      Problem(
        .tooManyUploads, "Too many requests of this address wait to publish.", help: "Try again in 5 s.", retryAfter: 5)
    case .unusable(let reason): Problem(.unusableMedia, reason)
    case .ended(let reason): Problem(.publicationEnded, reason)
    }
  }
}

extension PublishRefusal {
  /// The refusal as a response. It names no address.
  var problem: Problem {
    func problem(_ kind: ProblemKind, after seconds: Int? = nil) -> Problem {
      Problem(kind, publicDescription, retryAfter: seconds)
    }
    switch self {
    case .unauthorized:
      return Problem(
        .publishKeyWrong, "The publish key is missing or wrong.",
        help: "Send it as Authorization: Bearer KEY, or behind the address: ?key=KEY.",
        headers: [HeaderField("WWW-Authenticate", #"Bearer realm="weir""#)])
    case .unanswered: return problem(.accessUnanswered, after: 5)
    case .addressNotAllowed: return problem(.addressNotAllowed)
    case .busy: return problem(.streamBusy)
    case .tooManyTakeovers(_, let seconds), .tooManyBreaks(_, let seconds):
      return problem(.tooManyPublications, after: seconds)
    case .tooManyNames(_, let seconds): return problem(.tooManyPublications, after: seconds)
    case .tooManyOfAddress: return problem(.tooManyPublications)
    case .tooManyStreams, .noRoom, .shuttingDown: return problem(.noRoom, after: 5)
    }
  }
}
