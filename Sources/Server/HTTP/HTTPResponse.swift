internal import Basics
internal import NIOCore
package import NIOHTTP1
package import Storage

/// What a route answers. `HTTPServices` adds CORS, the connection Date, Content-Length or chunked framing and nosniff, answers HEAD,
/// `If-None-Match`, `If-Range` and single ranges, and compresses where `compression` allows it.
package struct HTTPResponse: Sendable {
  /// Whether parts of the body may be asked for.
  package enum Ranges: Sendable { case refused, bytes }

  /// Whether the body may be sent compressed. Media never is.
  package enum Compression: Sendable { case never, gzip }

  package enum Body: Sendable {
    case none
    /// Of known length, in this order.
    case pieces([BodyPiece])
    /// Head and body in one cached buffer; the response's own status, headers and tag are not used.
    case preencoded(PreencodedResponse)
    /// Endless, or of a length nobody knows yet.
    case live(any LiveBody)
  }

  package var status: HTTPResponseStatus
  /// Content-Type, Cache-Control and whatever else the route knows; nothing that the connection adds.
  package var headers: [HeaderField]
  /// A strong entity tag with its quotes (`"…"`), the same for the same bytes.
  package var entityTag: String?
  package var ranges: Ranges
  package var compression: Compression
  package var body: Body

  package init(
    status: HTTPResponseStatus = .ok, headers: [HeaderField] = [], entityTag: String? = nil, ranges: Ranges = .refused,
    compression: Compression = .never, body: Body = .none
  ) {
    self.status = status
    self.headers = headers
    self.entityTag = entityTag
    self.ranges = ranges
    self.compression = compression
    self.body = body
  }

  /// A cached response.
  package init(_ preencoded: PreencodedResponse) {
    self.init(status: preencoded.status, body: .preencoded(preencoded))
  }

  /// Complete media, or a recording: byte ranges are answered, nothing is compressed.
  package static func media(
    _ pieces: [BodyPiece], type: ContentType, cache: CachePolicy, entityTag: String? = nil
  ) -> HTTPResponse {
    HTTPResponse(
      headers: [HeaderField("Content-Type", type.rawValue), HeaderField("Cache-Control", cache.value)],
      entityTag: entityTag, ranges: .bytes, body: .pieces(pieces))
  }

  /// Text made for this one request.
  package static func text(
    _ text: String, status: HTTPResponseStatus = .ok, type: ContentType = .text, cache: CachePolicy,
    headers: [HeaderField] = []
  ) -> HTTPResponse {
    HTTPResponse(
      status: status,
      headers: [HeaderField("Content-Type", type.rawValue), HeaderField("Cache-Control", cache.value)] + headers,
      compression: .gzip, body: .pieces([.bytes(ByteBuffer(string: text))]))
  }

  /// What a redirection says of the address that was asked for.
  package enum Redirect: Sendable {
    /// It is the other one, written otherwise (RFC 9110 §15.4.9).
    case permanent
    /// It may mean something of its own one day.
    case temporary
  }

  /// A redirection that every client repeats with the same method.
  package static func redirect(
    to location: String, _ kind: Redirect = .temporary, cache: CachePolicy = .never
  ) -> HTTPResponse {
    HTTPResponse(
      status: kind == .permanent ? .permanentRedirect : .temporaryRedirect,
      headers: [HeaderField("Location", location), HeaderField("Cache-Control", cache.value)])
  }
}
