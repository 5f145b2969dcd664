internal import NIOCore
internal import NIOHTTP1

/// Makes requests of what was found on the wire, and refuses what no route should see. One per connection of HTTP/1.1, one
/// request at a time; one per stream of HTTP/2.
struct RequestAssembler {
  /// What the connection does after a part.
  enum Output {
    case nothing
    /// The peer waits for leave to send its body (RFC 9110 §10.1.1).
    case sendContinue
    /// Complete; `keepsAlive` is what the peer wishes for the connection.
    case request(HTTPRequest, keepsAlive: Bool)
    /// Answer this and close: the rest of the connection's bytes cannot be made sense of, or are not wanted.
    case refuse(Problem)
  }

  private let limits: HTTPLimits
  private let source: RequestSource
  private let responder: any HTTPResponder
  /// The head of the request that is arriving.
  private var head: RequestHead?
  private var target = RequestTarget(segments: [])
  private var body = ByteBuffer()
  /// Bytes that the body of the request that is arriving may have.
  private var bodyLimit = 0
  private var hasRefused = false

  init(services: HTTPServices, source: RequestSource) {
    limits = services.limits
    responder = services.responder
    self.source = source
  }

  /// Whether the head is here and the body is not yet.
  var isReceivingBody: Bool { head != nil }

  mutating func receive(_ part: RequestPart) -> Output {
    switch part {
    case .head(let head):
      return hasRefused ? .nothing : begin(head)
    case .body(let bytes):
      guard head != nil else { return .nothing }
      guard body.readableBytes &+ bytes.readableBytes <= bodyLimit else {
        return refuse(Problem.bodyTooLarge(bodyLimit))
      }
      // Copied, so that a small body does not keep a whole read buffer alive.
      body.writeImmutableBuffer(bytes)
      return .nothing
    case .end:
      guard let head = head.take() else { return .nothing }
      defer { if body.readableBytes > 0 { body = ByteBuffer() } }
      return .request(request(head), keepsAlive: head.keepsAlive)
    }
  }

  private mutating func refuse(_ problem: Problem) -> Output {
    head = nil
    hasRefused = true
    return .refuse(problem)
  }

  private mutating func begin(_ head: RequestHead) -> Output {
    // RFC 9112 §3.2
    guard head.hosts == 1 || (head.hosts == 0 && head.version == .http1_0) else {
      return refuse(.badRequest("The request has \(head.hosts) Host fields; it must have one."))
    }
    // Only what changes something brings a body (RFC 9110 §9.3.1: that of a GET means nothing).
    bodyLimit = [.get, .head, .options].contains(head.method) ? 0 : limits.requestBodyBytes
    if case .length(let length) = head.body, length > bodyLimit { return refuse(Problem.bodyTooLarge(bodyLimit)) }
    let bytes = head.target.readableBytesUInt8Span
    if head.method == .options, bytes.count == 1, bytes[0] == UInt8(ascii: "*") {
      target = RequestTarget(segments: [])
    } else {
      do {
        target = try RequestTarget(parsing: bytes, maximumBytes: limits.targetBytes)
      } catch .emptySegment {
        target = RequestTarget(segments: [""])
      } catch {
        return refuse(Self.problem(error))
      }
    }
    if head.expectation == .other {
      return refuse(
        Problem(status: .expectationFailed, title: "Expectation failed", detail: "Only 100-continue is met."))
    }
    let request = request(head)
    guard head.body != .none else { return .request(request, keepsAlive: head.keepsAlive) }
    if let problem = responder.refusal(ofBodyOf: request) { return refuse(problem) }
    self.head = head
    return head.expectation == .leave && head.version != .http1_0 ? .sendContinue : .nothing
  }

  private func request(_ head: RequestHead) -> HTTPRequest {
    HTTPRequest(
      method: head.method, target: target, version: head.version, fields: head.fields, body: body,
      source: source)
  }

  private static func problem(_ refusal: RequestTarget.Refusal) -> Problem {
    switch refusal {
    case .tooLong: StandardResponse.targetTooLong
    case .malformed: .badRequest("The address is malformed.")
    case .hostile: .badRequest("The address has a segment that no name can be.")
    case .emptySegment: .notFound("There is nothing at this address.")
    }
  }
}
