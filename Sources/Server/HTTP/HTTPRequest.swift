package import Ingest
package import NIOCore
package import NIOHTTP1

/// A request whose target has been checked and whose body, if it has one, has arrived whole. A class, since it is
/// handed through many hands and never changes.
package final class HTTPRequest: Sendable {
  /// What is asked for. `other` stands for every method that weir has no use for.
  package enum Method: Sendable, Equatable {
    case get, head, options, post, put, patch, delete, other
  }

  package let method: Method
  package let target: RequestTarget
  /// Empty unless the request had a body; at most `HTTPLimits.requestBodyBytes`.
  package let body: ByteBuffer
  /// The connection that it came by.
  package let source: RequestSource
  package let version: HTTPVersion
  package let fields: RequestFields

  package init(
    method: Method, target: RequestTarget, version: HTTPVersion = .http1_1, fields: RequestFields = .list([:]),
    body: ByteBuffer = ByteBuffer(), source: RequestSource = RequestSource()
  ) {
    self.method = method
    self.target = target
    self.version = version
    self.fields = fields
    self.body = body
    self.source = source
  }

  /// The segments of the path, percent-decoded, none of them empty, `.` or `..`, none with a slash, a backslash or a
  /// control character in it; none at all for `/`.
  package var path: [String] { target.segments }

  /// The value of the first field of that name, in whatever case.
  package func header(_ name: String) -> String? { fields.first(name) }

  /// The values of all fields of that name, in whatever case, in order.
  package func headers(_ name: String) -> [String] { fields.all(name) }

  /// The value of the first query item of that name, percent-decoded, with "+" for a space; "" where it has no "=".
  package func query(_ name: String) -> String? { target.query(name) }

  /// Whose request it is: what a trusted proxy tells, else the other end of the connection. Nil for channels that have no
  /// address.
  package var client: NetworkAddress? { source.client(fields) }

  /// Whether the client's connection is HTTPS; nil where a proxy may have ended TLS and nobody says.
  package var isSecure: Bool? { source.isSecure(fields) }

  /// GET and HEAD, which are answered alike.
  package var isRead: Bool { method == .get || method == .head }
}

extension HTTPRequest.Method {
  package init(_ method: HTTPMethod) {
    switch method {
    case .GET: self = .get
    case .HEAD: self = .head
    case .OPTIONS: self = .options
    case .POST: self = .post
    case .PUT: self = .put
    case .PATCH: self = .patch
    case .DELETE: self = .delete
    default: self = .other
    }
  }
}
