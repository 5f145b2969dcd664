internal import Storage

/// Which pages of other origins may read what (Fetch, "CORS protocol"): everybody what is played, nobody the rest, but for
/// origins that are named.
package struct CrossOrigin: Sendable, Hashable {
  /// As browsers send them: `https://player.example`. `*` stands for all.
  package let origins: [String]

  package init(origins: [String]) {
    self.origins = origins
  }

  static let playersOnly = CrossOrigin(origins: [])

  private static let exposed = HeaderField("Access-Control-Expose-Headers", "Content-Length, Content-Range, Date")
  private static let field = "Access-Control-Allow-Origin"

  /// Of what everybody may read.
  package static let everybody = [HeaderField(field, "*"), exposed]

  /// First path segments of what players ask for.
  private static let open: Set<String> = ["live", "time"]

  /// The response with what its request's origin is told.
  func applied(to response: HTTPResponse, of request: HTTPRequest) -> HTTPResponse {
    let fields = fields(for: request)
    if case .preencoded(let cached) = response.body {
      // Playlists of streams have them already.
      guard !fields.isEmpty, !cached.fields.contains(where: { $0.name == Self.field }) else { return response }
      return HTTPResponse(
        status: cached.status, headers: cached.fields + fields, entityTag: cached.entityTag, compression: .gzip,
        body: .pieces([.bytes(cached.body)]))
    }
    var response = response
    if fields.isEmpty {
      response.headers.removeAll { $0.name.hasPrefix("Access-Control-") }
    } else {
      response.headers += fields
    }
    return response
  }

  private func fields(for request: HTTPRequest) -> [HeaderField] {
    if let first = request.path.first, Self.open.contains(first) { return Self.everybody }
    guard !origins.isEmpty else { return [] }
    guard !origins.contains("*") else { return Self.everybody }
    let other = HeaderField("Vary", "Origin")
    guard let origin = request.header("Origin"), origins.contains(origin) else { return [other] }
    return [HeaderField(Self.field, origin), Self.exposed, other]
  }
}
