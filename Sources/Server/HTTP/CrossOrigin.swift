internal import Storage

/// Which responses pages of other origins may read (Fetch, "CORS protocol"). Media for players is open to all origins, the
/// rest only to configured origins.
package struct CrossOrigin: Sendable, Hashable {
  /// As browsers send them: `https://player.example`. `*` stands for all.
  package let origins: [String]
  /// Those whose pages may embed the player: they may read its files, the state of a stream and recordings' media.
  private let embedders: [String]

  package init(origins: [String], embedders: [String] = []) {
    self.origins = origins
    self.embedders = origins + embedders
  }

  package static let playersOnly = CrossOrigin(origins: [])

  private static let exposed = HeaderField("Access-Control-Expose-Headers", "Content-Length, Content-Range, Date")
  /// What a peer by WebRTC reads of its answer (RFC 9725 §4.6).
  private static let exposedOfSessions = HeaderField(
    "Access-Control-Expose-Headers", "ETag, Link, Location, Weir-Left-Out, Weir-Replaced")
  private static let field = "Access-Control-Allow-Origin"

  /// Whether pages of an origin may publish by WebRTC. Only those that are named: any page could publish from the address and the
  /// network of its visitor else.
  package func mayPublish(_ origin: String) -> Bool { origin != "*" && origin != "null" && origins.contains(origin) }

  /// Fields of responses that all origins may read.
  package static let anyOrigin = [HeaderField(field, "*"), exposed]

  /// First path segments of addresses for players.
  private static let open: Set<String> = ["live", "time", "whep"]

  /// The response with the fields for its request's origin.
  func applied(to response: HTTPResponse, of request: HTTPRequest) -> HTTPResponse {
    let fields = fields(for: request)
    if case .preencoded(let cached) = response.body {
      // Playlists of streams already have the fields.
      guard !fields.isEmpty, !cached.fields.contains(where: { $0.name == Self.field }) else { return response }
      let (head, body) = cached.parts(acceptsGzip: request.fields.acceptsGzip)
      return HTTPResponse(
        status: head.status, headers: head.fields + fields, entityTag: head.entityTag, body: .pieces([.bytes(body)]))
    }
    var response = response
    if !fields.contains(where: { $0.name == Self.field }) {
      response.headers.removeAll { $0.name.hasPrefix("Access-Control-") }
    }
    response.headers += fields
    return response
  }

  private func fields(for request: HTTPRequest) -> [HeaderField] {
    if let first = request.path.first, Self.open.contains(first), !Self.isForEmbedders(request.path) {
      return first == "whep" ? [Self.anyOrigin[0], Self.exposedOfSessions] : Self.anyOrigin
    }
    let isOfPublishers = request.path.first == "whip"
    let allowed =
      isOfPublishers ? origins.filter(mayPublish) : Self.isForEmbedders(request.path) ? embedders : origins
    guard !allowed.isEmpty else { return [] }
    guard !allowed.contains("*") else { return Self.anyOrigin + Self.timing("*", request) }
    let other = HeaderField("Vary", "Origin")
    guard let origin = request.header("Origin"), allowed.contains(origin) else { return [other] }
    let exposed = isOfPublishers ? Self.exposedOfSessions : Self.exposed
    return [HeaderField(Self.field, origin), exposed, other] + Self.timing(origin, request)
  }

  /// The player's files, the state of one stream, one recording, and what an address shows (oEmbed).
  private static func isForEmbedders(_ path: [String]) -> Bool {
    switch path.first {
    case "web": true
    case "recordings": path.count > 2
    // It tells of devices and recordings, too.
    case "live": path.count == 3 && path[2] == "status.json"
    case "api": path.count == 4 && path[2] == "streams" || path.count == 3 && path[2] == "oembed"
    default: false
    }
  }

  /// The player's files tell which version of HTTP brought them (Resource Timing §4.5): over HTTP/1.1 a browser has six
  /// connections to a host, of which an endless response takes one.
  private static func timing(_ origin: String, _ request: HTTPRequest) -> [HeaderField] {
    request.path.first == "web" ? [HeaderField("Timing-Allow-Origin", origin)] : []
  }
}
