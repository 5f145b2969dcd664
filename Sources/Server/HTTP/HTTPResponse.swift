internal import NIOCore
internal import NIOHTTP1

/// One field of a response's head. Names and values are ours or checked: never bytes of a peer.
struct HeaderField: Sendable, Equatable {
  var name: String
  var value: String

  init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// What a route answers. `HTTPServices` adds CORS, the connection Date, Content-Length or chunked framing and nosniff, answers HEAD,
/// `If-None-Match`, `If-Range` and single ranges, and compresses where `compression` allows it.
struct HTTPResponse: Sendable {
  /// Whether parts of the body may be asked for.
  enum Ranges: Sendable { case refused, bytes }

  /// Whether the body may be sent compressed. Media never is.
  enum Compression: Sendable { case never, gzip }

  enum Body: Sendable {
    case none
    /// Of known length, in this order.
    case pieces([BodyPiece])
    /// Head and body in one cached buffer; the response's own status, headers and tag are not used.
    case preencoded(PreencodedResponse)
    /// Endless, or of a length nobody knows yet.
    case live(any LiveBody)
  }

  var status: HTTPResponseStatus
  /// Content-Type, Cache-Control and whatever else the route knows; nothing that the connection adds.
  var headers: [HeaderField]
  /// A strong entity tag with its quotes (`"…"`), the same for the same bytes.
  var entityTag: String?
  var ranges: Ranges
  var compression: Compression
  var body: Body

  init(
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
  init(_ preencoded: PreencodedResponse) {
    self.init(status: preencoded.status, body: .preencoded(preencoded))
  }

  /// Complete media, or a recording: byte ranges are answered, nothing is compressed.
  static func media(
    _ pieces: [BodyPiece], type: ContentType, cache: CachePolicy, entityTag: String? = nil
  ) -> HTTPResponse {
    HTTPResponse(
      headers: [HeaderField("Content-Type", type.rawValue), HeaderField("Cache-Control", cache.value)],
      entityTag: entityTag, ranges: .bytes, body: .pieces(pieces))
  }

  /// Text made for this one request.
  static func text(
    _ text: String, status: HTTPResponseStatus = .ok, type: ContentType = .text, cache: CachePolicy,
    headers: [HeaderField] = []
  ) -> HTTPResponse {
    HTTPResponse(
      status: status,
      headers: [HeaderField("Content-Type", type.rawValue), HeaderField("Cache-Control", cache.value)] + headers,
      compression: .gzip, body: .pieces([.bytes(ByteBuffer(string: text))]))
  }

  /// What a redirection says of the address that was asked for.
  enum Redirect: Sendable {
    /// It is the other one, written otherwise (RFC 9110 §15.4.9).
    case permanent
    /// It may mean something of its own one day.
    case temporary
  }

  /// A redirection that every client repeats with the same method.
  static func redirect(
    to location: String, _ kind: Redirect = .temporary, cache: CachePolicy = .never
  ) -> HTTPResponse {
    HTTPResponse(
      status: kind == .permanent ? .permanentRedirect : .temporaryRedirect,
      headers: [HeaderField("Location", location), HeaderField("Cache-Control", cache.value)])
  }
}
