internal import NIOCore
package import NIOHTTP1
package import Storage

/// The response of a route. `HTTPServices` adds CORS. The connection adds Date, Content-Length or chunked framing, and nosniff;
/// it handles HEAD, `If-None-Match`, `If-Range` and single ranges, and compresses when `compression` allows it.
package struct HTTPResponse: Sendable {
  /// Whether ranges of the body may be requested.
  package enum Ranges: Sendable { case refused, bytes }

  /// Whether the body may be compressed. Media never is.
  package enum Compression: Sendable { case never, gzip }

  package enum Body: Sendable {
    case none
    /// Of known length, in this order.
    case pieces([BodyPiece])
    /// Head and body in one cached buffer. The response's own status, headers and tag are not used.
    case preencoded(PreencodedResponse)
    /// Endless, or of unknown length.
    case live(any LiveBody)
  }

  package var status: HTTPResponseStatus
  /// Content-Type, Cache-Control and other fields of the route; not the fields that the connection adds.
  package var headers: [HeaderField]
  /// A strong entity tag with its quotes (`"…"`); equal for equal bytes.
  package var entityTag: String?
  package var ranges: Ranges
  package var compression: Compression
  package var body: Body
  /// What admitted the request, when the answer to it could not tell (`HTTPAnswer.pass`).
  var pass: (any ViewerPass)?

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

  /// The body, if it is a playlist.
  var playlist: PreencodedResponse? { if case .preencoded(let playlist) = body { playlist } else { nil } }

  /// A cached response.
  package init(_ preencoded: PreencodedResponse) {
    self.init(status: preencoded.status, body: .preencoded(preencoded))
  }

  /// Complete media, or a recording: byte ranges are supported, nothing is compressed.
  package static func media(
    _ pieces: [BodyPiece], type: ContentType, cache: CachePolicy, entityTag: String? = nil
  ) -> HTTPResponse {
    HTTPResponse(
      headers: [HeaderField("Content-Type", type.rawValue), HeaderField("Cache-Control", cache.value)],
      entityTag: entityTag, ranges: .bytes, body: .pieces(pieces))
  }

  /// Text for one request.
  package static func text(
    _ text: String, status: HTTPResponseStatus = .ok, type: ContentType = .text, cache: CachePolicy,
    headers: [HeaderField] = []
  ) -> HTTPResponse {
    HTTPResponse(
      status: status,
      headers: [HeaderField("Content-Type", type.rawValue), HeaderField("Cache-Control", cache.value)] + headers,
      compression: .gzip, body: .pieces([.bytes(ByteBuffer(string: text))]))
  }

  /// How long a redirection holds.
  package enum Redirect: Sendable {
    /// The same resource under its canonical address (RFC 9110 §15.4.9).
    case permanent
    /// The address may get its own meaning later.
    case temporary
  }

  /// A redirection that clients follow with the same method.
  package static func redirect(
    to location: String, _ kind: Redirect = .temporary, cache: CachePolicy = .never
  ) -> HTTPResponse {
    HTTPResponse(
      status: kind == .permanent ? .permanentRedirect : .temporaryRedirect,
      headers: [HeaderField("Location", location), HeaderField("Cache-Control", cache.value)])
  }
}

extension HTTPResponse {
  /// The same response for caches of one client. A shared cache would give it to clients without the field that admitted this
  /// one (RFC 9111 §3.5).
  var forOneClient: HTTPResponse {
    var response = self
    if case .preencoded(let cached) = body {
      // The fields for pages of other origins are added to each response (`CrossOrigin`).
      response = HTTPResponse(
        status: cached.status, headers: cached.fields.filter { !$0.name.hasPrefix("Access-Control-") },
        entityTag: cached.entityTag, compression: .gzip,
        body: .pieces([.bytes(cached.body)]))
    }
    response.headers = response.headers.map { field in
      guard field.name == "Cache-Control", field.value.hasPrefix("public") else { return field }
      return HeaderField(field.name, "private" + field.value.dropFirst("public".count))
    }
    return response
  }
}
