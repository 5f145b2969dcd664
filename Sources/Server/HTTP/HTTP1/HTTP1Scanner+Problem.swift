internal import NIOHTTP1

extension HTTP1Scanner.Fault {
  /// The response to the client.
  var problem: Problem {
    switch self {
    case .fieldsTooLarge: StandardResponse.fieldsTooLarge
    case .targetTooLong: StandardResponse.targetTooLong
    case .unknownVersion:
      Problem(
        .versionNotSupported, "This server supports HTTP/1.1 and HTTP/1.0, and HTTP/2 over TLS.")
    case .unknownMethod: .methodNotAllowed()
    case .malformed(let what): Problem(.malformedRequest, "This is no HTTP request: \(what).")
    }
  }
}
