internal import NIOCore
internal import NIOHTTP1

/// A part of an arriving request: the head; if that announces a body, also pieces of the body and an end.
enum RequestPart {
  case head(RequestHead)
  case body(ByteBuffer)
  case end

  /// Whether nothing more of its request follows.
  var isLast: Bool {
    switch self {
    case .head(let head): head.body == .none
    case .body: false
    case .end: true
    }
  }
}

/// The head of a request before it is checked. `HTTP1Scanner` finds it in bytes; for HTTP/2 it comes from a field section.
struct RequestHead {
  /// What the head tells about the body.
  enum Body: Equatable {
    /// No body: the request is complete.
    case none
    /// In bytes, from Content-Length; more than 0.
    case length(Int)
    /// The body marks its own end.
    case open
  }

  /// What the client expects before it sends its body (RFC 9110 §10.1.1).
  enum Expectation {
    case nothing
    case leave
    /// An unknown expectation.
    case other
  }

  var method: HTTPRequest.Method
  var version: HTTPVersion
  /// As in the request line, but without a token.
  var target: ByteBuffer
  /// The token that the path began with (`TokenPrefix`).
  var token: ByteBuffer?
  var fields: RequestFields
  /// The number of Host fields (HTTP/2: 1 with an authority).
  var hosts: Int
  var body = Body.none
  var expectation = Expectation.nothing
  /// Whether the client wants to keep the connection after the response.
  var keepsAlive = true

  /// - Parameter target: as in the request line.
  init(
    method: HTTPRequest.Method, version: HTTPVersion, target: ByteBuffer, fields: RequestFields, hosts: Int,
    body: Body = .none, expectation: Expectation = .nothing, keepsAlive: Bool = true
  ) {
    (self.method, self.version, self.fields, self.hosts) = (method, version, fields, hosts)
    (self.body, self.expectation, self.keepsAlive) = (body, expectation, keepsAlive)
    let parts = TokenPrefix.split(target)
    (token, self.target) = (parts?.token, parts?.rest ?? target)
  }

  /// The same request without what the server's paths begin with for clients.
  func without(_ prefix: String) -> RequestHead {
    // A token comes behind it.
    prefix.isEmpty || token != nil ? self : asking(for: PathPrefix.removed(prefix, from: target))
  }

  /// The same request for another target, which is as in the request line.
  func asking(for target: ByteBuffer) -> RequestHead {
    var head = self
    let parts = TokenPrefix.split(target)
    (head.token, head.target) = (parts?.token, parts?.rest ?? target)
    return head
  }
}
