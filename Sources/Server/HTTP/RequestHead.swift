internal import NIOCore
internal import NIOHTTP1

/// A request as it arrives: a head, which is all of it unless it announces a body; then the pieces of that, and an end.
enum RequestPart {
  case head(RequestHead)
  case body(ByteBuffer)
  case end
}

/// The head of a request, before anybody has judged what it asks for: `HTTP1Scanner` finds it in bytes, HTTP/2's comes
/// from a field section.
struct RequestHead {
  /// What the request says of its body.
  enum Body: Equatable {
    /// There is none: the request is complete.
    case none
    /// In bytes, as Content-Length says; more than 0.
    case length(Int)
    /// It ends where it says so.
    case open
  }

  /// What the client expects before it sends its body (RFC 9110 §10.1.1).
  enum Expectation {
    case nothing
    case leave
    /// Something nobody knows.
    case other
  }

  var method: HTTPRequest.Method
  var version: HTTPVersion
  /// As it stands in the request line.
  var target: ByteBuffer
  var fields: RequestFields
  /// How many Host fields there are (HTTP/2: whether there is an authority).
  var hosts: Int
  var body = Body.none
  var expectation = Expectation.nothing
  /// What the client wishes for the connection after the response.
  var keepsAlive = true
}
