internal import NIOCore
internal import NIOHTTP1
internal import Storage

/// The response to a request: a pure function of the request and the route's response. `HTTP1Response` and `HTTP2Response`
/// encode it for their version.
enum ResponsePlan {
  /// A cached response, in the form for the client; without its body for HEAD.
  case cached(PreencodedResponse, acceptsGzip: Bool, sendsBody: Bool)
  /// A head, and the pieces of the body; empty for HEAD and without a body.
  case complete(ResponseHead, [BodyPiece])
  /// A head, then the output of the body.
  case live(ResponseHead, any LiveBody)

  init(_ response: HTTPResponse, to request: HTTPRequest) {
    switch response.body {
    case .preencoded(let cached):
      self.init(cached, to: request)
    case .pieces(let pieces):
      self.init(response, pieces: pieces, to: request)
    case .none:
      self.init(response, pieces: [], to: request)
    case .live(let body):
      let head = ResponseHead(status: response.status, fields: response.headers, length: .open)
      self = request.method == .head ? .complete(head, []) : .live(head, body)
    }
  }

  private init(_ cached: PreencodedResponse, to request: HTTPRequest) {
    if let condition = request.header("If-None-Match"), request.isRead, cached.status == .ok,
      EntityTag.list(condition, contains: cached.entityTag)
        || EntityTag.list(condition, contains: EntityTag.compressed(cached.entityTag))
    {
      self = .complete(Self.notModified(cached.fields, entityTag: cached.entityTag), [])
      return
    }
    self = .cached(
      cached, acceptsGzip: request.fields.acceptsGzip,
      sendsBody: request.method != .head)
  }

  private init(_ response: HTTPResponse, pieces: [BodyPiece], to request: HTTPRequest) {
    var head = ResponseHead(
      status: response.status, fields: response.headers, entityTag: response.entityTag, length: .bodiless)
    var pieces = pieces
    var length = pieces.totalLength

    if response.compression == .gzip {
      head.fields.append(HeaderField("Vary", "Accept-Encoding"))
      if let compressed = Self.compressed(pieces, length: length, for: request) {
        pieces = [.bytes(compressed)]
        length = compressed.readableBytes
        head.fields.append(HeaderField("Content-Encoding", "gzip"))
        head.entityTag = head.entityTag.map(EntityTag.compressed)
      }
    }
    if head.status == .ok, request.isRead {
      if let entityTag = head.entityTag, let condition = request.header("If-None-Match"),
        EntityTag.list(condition, contains: entityTag)
      {
        self = .complete(Self.notModified(head.fields, entityTag: entityTag), [])
        return
      }
      if response.ranges == .bytes {
        head.fields.append(HeaderField("Accept-Ranges", "bytes"))
        switch Self.range(of: request, length: length, entityTag: head.entityTag) {
        case .whole: break
        case .part(let range):
          head.status = .partialContent
          head.fields.append(
            HeaderField("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)"))
          pieces = pieces.slice(range)
          length = range.count
        case .unsatisfiable:
          head.status = .rangeNotSatisfiable
          head.fields.removeAll { $0.name == "Cache-Control" || $0.name == "Content-Type" }
          head.fields.append(HeaderField("Cache-Control", CachePolicy.never.value))
          head.fields.append(HeaderField("Content-Range", "bytes */\(length)"))
          pieces = []
          length = 0
          head.entityTag = nil
        }
      }
    }
    head.length = head.status == .noContent || head.status == .notModified ? .bodiless : .known(length)
    self = .complete(head, request.method == .head || length == 0 ? [] : pieces)
  }

  /// Range is used only when If-Range, if present, has the tag of these bytes.
  private static func range(of request: HTTPRequest, length: Int, entityTag: String?) -> ByteRange {
    guard let field = request.header("Range") else { return .whole }
    if let condition = request.header("If-Range") {
      guard let entityTag, EntityTag.condition(condition, isExactly: entityTag) else { return .whole }
    }
    return ByteRange(field, length: length)
  }

  /// The gzip form of a body for one request; nil when it is not accepted or not useful.
  private static func compressed(_ pieces: [BodyPiece], length: Int, for request: HTTPRequest) -> ByteBuffer? {
    guard (Gzip.smallestBody...Gzip.largestInline).contains(length), pieces.count == 1,
      case .bytes(let bytes) = pieces[0], request.fields.acceptsGzip,
      let compressed = Gzip.compressed(bytes), compressed.readableBytes < length
    else { return nil }
    return compressed
  }

  /// 304 with the fields that a cache needs again (RFC 9110 §15.4.5), and those for pages of other origins.
  private static func notModified(_ fields: [HeaderField], entityTag: String) -> ResponseHead {
    ResponseHead(
      status: .notModified,
      fields: fields.filter {
        $0.name == "Cache-Control" || $0.name == "Vary" || $0.name.hasPrefix("Access-Control-")
      },
      entityTag: entityTag, length: .bodiless)
  }
}
