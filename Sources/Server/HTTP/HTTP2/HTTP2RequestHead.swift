internal import NIOCore
internal import NIOHPACK
internal import NIOHTTP1

/// Converts the head of a request to the form of HTTP/1.1, so that `RequestAssembler` checks both.
enum HTTP2RequestHead {
  /// HTTP/2 in the form of `HTTPRequest.version`.
  static let version = HTTPVersion(major: 2, minor: 0)

  /// Nil when the fields exceed `limits`. NIO has checked that the pseudo-fields exist, that names are in lower case, that no
  /// field concerns the connection, and that Content-Length is correct (RFC 9113 §8.1.1, §8.2, §8.3). `isComplete`: no body
  /// follows.
  static func make(_ fields: HPACKHeaders, isComplete: Bool, limits: HTTPLimits) -> RequestHead? {
    var method = ""
    var path = ""
    var authority: String?
    var headers = HTTPHeaders()
    headers.reserveCapacity(fields.count)
    var bytes = 0
    var hosts = 0
    var body = isComplete ? RequestHead.Body.none : .open
    var expectation = RequestHead.Expectation.nothing
    var known: RequestFields.Known = []
    for (name, value, _) in fields {
      let size = name.utf8.count &+ value.utf8.count
      bytes &+= size
      guard size <= limits.headerFieldBytes || name == ":path" else { return nil }
      switch name {
      case ":method": method = value
      case ":path": path = value
      case ":authority": authority = value
      case _ where name.utf8.first == UInt8(ascii: ":"): break
      // :authority replaces it (RFC 9113 §8.3.1).
      case "host" where authority != nil: break
      default:
        switch name {
        case "host": hosts += 1
        case "content-length" where !isComplete: body = Int(value).map { .length(max(0, $0)) } ?? .open
        case "expect": expectation = value.utf8Span.span.isField("100-continue") ? .leave : .other
        default: break
        }
        known.insert(RequestFields.Known(name.utf8Span.span))
        headers.add(name: name, value: value)
      }
    }
    guard bytes <= limits.headerBytes, headers.count < limits.headerCount else { return nil }
    if let authority {
      headers.add(name: "host", value: authority)
      hosts += 1
    }
    return RequestHead(
      method: HTTPRequest.Method(HTTPMethod(rawValue: method)), version: version, target: ByteBuffer(string: path),
      fields: .list(headers, known), hosts: hosts, body: body, expectation: expectation)
  }
}
