package import Base
package import NIOCore
package import NIOHTTP1

/// A request with a checked target and a complete body, if it has one. An immutable class, because it is passed on often.
package final class HTTPRequest: Sendable {
  /// The method. `other` stands for each method that weir does not support.
  package enum Method: Sendable, Equatable {
    case get, head, options, post, put, patch, delete, other
  }

  package let method: Method
  package let target: RequestTarget
  /// Empty for a request without a body; at most `HTTPLimits.requestBodyBytes`.
  package let body: ByteBuffer
  /// The connection of the request.
  package let source: RequestSource
  package let version: HTTPVersion
  package let fields: RequestFields
  /// The token that the path began with, not verified; nil without one.
  package let token: ByteBuffer?
  /// What absolute paths in a response begin with, before the token (`PublicURL.path`).
  package let prefix: String

  package init(
    method: Method, target: RequestTarget, version: HTTPVersion = .http1_1, fields: RequestFields = .empty,
    body: ByteBuffer = ByteBuffer(), source: RequestSource = RequestSource(), token: ByteBuffer? = nil,
    prefix: String = ""
  ) {
    self.method = method
    self.target = target
    self.version = version
    self.fields = fields
    self.body = body
    self.source = source
    self.token = token
    self.prefix = prefix
  }

  /// The segments of the path, percent-decoded. None is empty, `.` or `..`, or contains a slash, a backslash or a control
  /// character. Empty for `/`.
  package var path: [String] { target.segments }

  /// The value of the first field of that name, without regard to case.
  package func header(_ name: String) -> String? { fields.first(name) }

  /// The values of all fields of that name, without regard to case, in order.
  package func headers(_ name: String) -> [String] { fields.all(name) }

  /// The value of the first query item of that name, percent-decoded, with "+" for a space; "" for an item without "=".
  package func query(_ name: String) -> String? { target.query(name) }

  /// The client's address: from a trusted proxy, or that of the connection. Nil for channels without an address.
  package var client: NetworkAddress? { source.client(fields) }

  /// Whether the client's connection is HTTPS. Nil when a proxy may have ended TLS and does not say.
  package var isSecure: Bool? { source.isSecure(fields) }

  /// GET and HEAD, which have the same response but for the body.
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
