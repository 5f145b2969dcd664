internal import NIOCore
internal import NIOHTTP1

/// Assembles and checks requests, and refuses those that no route may see. One for each HTTP/1.1 connection, with one request
/// at a time; one for each HTTP/2 stream.
struct RequestAssembler {
  /// What the connection must do after a part.
  enum Output {
    case nothing
    /// Send 100 Continue: the client waits for it before the body (RFC 9110 §10.1.1).
    case sendContinue
    /// The request is complete; `keepsAlive` says whether the client wants to keep the connection.
    case request(HTTPRequest, keepsAlive: Bool)
    /// The head is complete, and a route takes the body while it arrives. No part of it belongs to the assembler.
    case arriving(ArrivingRequest)
    /// Send this response and close: the rest of the input is invalid or not needed.
    case refuse(Problem)
  }

  // Each connection holds a copy of its limits, so it has only these.
  private let targetBytes: Int
  private let requestBodyBytes: Int
  /// An object, since most requests have no body.
  private final class Held {
    let head: RequestHead
    init(_ head: RequestHead) { self.head = head }
  }

  private let source: RequestSource
  private let services: HTTPServices
  /// The head of the request whose body is arriving.
  private var head: Held?
  private var target = RequestTarget(segments: [])
  private var body = ByteBuffer()
  /// The most bytes for the body of the request that is arriving.
  private var bodyLimit = 0
  private var hasRefused = false

  init(services: HTTPServices, source: RequestSource) {
    targetBytes = services.limits.targetBytes
    requestBodyBytes = services.limits.requestBodyBytes
    self.services = services
    self.source = source
  }

  /// Whether the head has arrived and the body is incomplete.
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
      // Copied, so that a small body does not keep a whole read buffer in memory.
      body.writeImmutableBuffer(bytes)
      return .nothing
    case .end:
      guard let head = head.take()?.head else { return .nothing }
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
      return refuse(Problem(.malformedRequest, "The request has \(head.hosts) Host fields; it must have one."))
    }
    // Only requests that change something have a body (RFC 9110 §9.3.1: the body of a GET has no meaning).
    bodyLimit = [.get, .head, .options].contains(head.method) ? 0 : requestBodyBytes
    let bytes = head.target.readableBytesUInt8Span
    if head.method == .options, bytes.count == 1, bytes[0] == UInt8(ascii: "*") {
      target = RequestTarget(segments: [])
    } else {
      do {
        target = try RequestTarget(parsing: bytes, maximumBytes: targetBytes)
      } catch .emptySegment {
        target = RequestTarget(segments: [""])
      } catch {
        return refuse(Self.problem(error))
      }
    }
    if head.expectation == .other {
      return refuse(
        Problem(
          .expectationFailed, "The only supported expectation is 100-continue."))
    }
    let request = request(head)
    // It is the request's from here on: a connection that waits does not keep it.
    if head.body == .none { target = RequestTarget(segments: []) }
    if let problem = services.refusal(ofHostOf: head, request) { return refuse(problem) }
    if case .length(let length) = head.body, length > bodyLimit, !services.responder.takesArrivingBody(of: request) {
      return refuse(Problem.bodyTooLarge(bodyLimit))
    }
    guard head.body != .none else { return .request(request, keepsAlive: head.keepsAlive) }
    if let problem = services.responder.refusal(ofBodyOf: request) { return refuse(problem) }
    let awaitsContinue = head.expectation == .leave && head.version != .http1_0
    if let body = services.responder.arrivingBody(of: request) {
      return .arriving(
        ArrivingRequest(request, body, keepsAlive: head.keepsAlive, awaitsContinue: awaitsContinue))
    }
    self.head = Held(head)
    return awaitsContinue ? .sendContinue : .nothing
  }

  private func request(_ head: RequestHead) -> HTTPRequest {
    HTTPRequest(
      method: head.method, target: target, version: head.version, fields: head.fields, body: body,
      source: source, token: head.token, prefix: services.prefix)
  }

  private static func problem(_ refusal: RequestTarget.Refusal) -> Problem {
    switch refusal {
    case .tooLong: StandardResponse.targetTooLong
    case .malformed: Problem(.malformedAddress, "The address is malformed.")
    case .hostile: Problem(.malformedAddress, "The address has a segment that no name can be.")
    case .emptySegment: .notFound("There is nothing at this address.")
    }
  }
}
