internal import NIOHTTP1

extension HTTP1Scanner.Fault {
  /// The response to the client.
  var problem: Problem {
    switch self {
    case .fieldsTooLarge: StandardResponse.fieldsTooLarge
    case .targetTooLong: StandardResponse.targetTooLong
    case .unknownVersion:
      Problem(
        status: .httpVersionNotSupported, title: "HTTP version not supported",
        detail: "This server supports HTTP/1.1 and HTTP/1.0, and HTTP/2 over TLS.")
    case .unknownMethod: .methodNotAllowed()
    case .malformed(let what): .badRequest("This is no HTTP request: \(what).")
    }
  }
}
