internal import Basics
internal import HTTP

/// All routes of the API in one list. From it follow the list at `/api/v1`, 404, 405, Allow, the check of the admin token, and
/// docs/http.md.
enum APITable {
  static let routes = [
    APIRoute(.get, "/api/v1", "this list") { _, _ in .now(.json(APITable.index)) },
    APIRoute(.get, "/api/v1/admin", .admin, "200: the token is the right one") { _, _ in .now(.json(["admin": true])) },
    APIRoute(.get, "/api/v1/devices", .admin, "cameras and microphones of this machine") { $0.sources.devices($1) },
    APIRoute(.get, "/api/v1/events", .admin, "what happened: a page, or as it comes (text/event-stream)") {
      $0.events.list($1)
    },
    APIRoute(.get, "/api/v1/events/deliveries", .admin, "what hooks did lately, and what they wait for") { api, _ in
      api.events.listDeliveries
    },
    APIRoute(.get, "/api/v1/recordings", "a page of recordings, newest first") { $0.recordingAPI.list($1) },
    APIRoute(.get, "/api/v1/recordings/{stream}/{file}", "one recording") { $0.recordingAPI.one($1) },
    APIRoute(.delete, "/api/v1/recordings/{stream}/{file}", .admin, "moves it aside, to be deleted later") {
      $0.recordingAPI.change($1, .delete)
    },
    APIRoute(.get, "/api/v1/recordings/{stream}/{file}/clip", "a stretch of it as an MP4") { $0.replay.clip($1) },
    APIRoute(.get, "/api/v1/recordings/{stream}/{file}/keyframes", "where decoding can begin, and the time of day") {
      $0.replay.keyFrames($1)
    },
    APIRoute(.post, "/api/v1/recordings/{stream}/{file}/protect", .admin, "nothing deletes it") {
      $0.recordingAPI.change($1, .protect)
    },
    APIRoute(.post, "/api/v1/recordings/{stream}/{file}/restore", .admin, "takes a deletion back") {
      $0.recordingAPI.change($1, .restore)
    },
    APIRoute(.post, "/api/v1/recordings/{stream}/{file}/unprotect", .admin, "it may be deleted again") {
      $0.recordingAPI.change($1, .unprotect)
    },
    APIRoute(.get, "/api/v1/refusals", "publications that were refused lately, and why") { $0.refusals.list($1) },
    APIRoute(.get, "/api/v1/sources", .admin, "this server's own sources") { $0.sources.list($1) },
    APIRoute(.get, "/api/v1/sources/{source}", .admin, "one of them") { $0.sources.one($1) },
    APIRoute(.get, "/api/v1/sources/{source}/preview.jpg", .admin, "its newest frame") { $0.sources.preview($1) },
    APIRoute(.post, "/api/v1/sources/{source}/recording/start|stop|cancel", .admin, "its recording, on the air or off")
    {
      $0.sources.record($1)
    },
    APIRoute(.post, "/api/v1/sources/{source}/start|preview|stop", .admin, "puts it on the air, takes it off, ends it")
    {
      $0.sources.act($1)
    },
    APIRoute(.get, "/api/v1/storage", "room on the disk of recordings") { $0.recordingAPI.storage(on: $1.eventLoop) },
    APIRoute(.get, "/api/v1/streams", "all streams, and what this server is") { $0.list(on: $1.eventLoop) },
    APIRoute(.get, "/api/v1/streams/{stream}", "one stream") { $0.stream($1) },
    APIRoute(
      .post, "/api/v1/streams/{stream}/capture/camera|microphone|controls|keyframe", .admin, takesBody: true,
      "changes devices and their controls while they are live"
    ) { $0.captures.change($1) },
    APIRoute(.post, "/api/v1/streams/{stream}/recording/start|stop|cancel", .admin, "the stream's recording") {
      $0.recordingAPI.control($1)
    },
  ]

  private static let addresses: [APIAddress] = {
    var addresses: [APIAddress] = []
    for route in routes {
      if addresses.last?.pattern == route.pattern {
        addresses[addresses.count - 1].routes.append(route)
      } else {
        addresses.append(APIAddress(route))
      }
    }
    return addresses
  }()

  /// Why a request is refused before its handler runs.
  struct Refusal: Error {
    let problem: Problem
  }

  /// The route of a request, and the values from its address.
  static func admit(_ request: HTTPRequest, _ gate: AdminGate) -> Result<(route: APIRoute, values: [String]), Refusal> {
    guard let (address, values) = find(request.path) else { return .failure(Refusal(problem: unknown(request.path))) }
    guard let route = address.route(for: request.method) else {
      return .failure(Refusal(problem: .methodNotAllowed(allow: address.methods.description)))
    }
    if route.access == .admin, let refusal = gate.refusal(of: request) { return .failure(Refusal(problem: refusal)) }
    return .success((route, values))
  }

  /// The address that a path matches, and its values; nil if it matches none.
  static func find(_ path: [String]) -> (address: APIAddress, values: [String])? {
    // `/api` is `/api/v1`. A slash at the end changes nothing: programs do not follow redirections by themselves.
    let path = path == ["api"] ? ["api", "v1"] : path
    for address in addresses {
      if let values = address.values(of: path) { return (address, values) }
    }
    return nil
  }

  /// The 404 for a path, with the words that its last segment may have.
  static func unknown(_ path: [String]) -> Problem {
    let words = path.count > 3 ? addresses.flatMap { $0.words(insteadOfLastIn: path) } : []
    let help = words.isEmpty ? "See /api/v1." : "Use one of \(words.joined(separator: ", "))."
    return .notFound("The API has no such address.", help: help)
  }

  /// `/api/v1`.
  struct Index: Encodable {
    let version = Version.number
    let addresses: [Address]

    struct Address: Encodable {
      let path: String
      let methods: String
    }
  }

  static var index: Index {
    Index(addresses: addresses.map { Index.Address(path: $0.pattern, methods: $0.methods.description) })
  }
}

/// The routes of one address.
struct APIAddress: Sendable {
  let pattern: String
  fileprivate(set) var routes: [APIRoute]
  private let segments: [Segment]

  private enum Segment: Sendable {
    case word(String)
    case any
    case oneOf([String])
  }

  fileprivate init(_ route: APIRoute) {
    pattern = route.pattern
    routes = [route]
    segments = route.pattern.split(separator: "/").map { segment in
      if segment.hasPrefix("{") { return .any }
      let words = segment.split(separator: "|").map(String.init)
      return words.count == 1 ? .word(words[0]) : .oneOf(words)
    }
  }

  var methods: AllowedMethods { routes.reduce([]) { $0.union($1.method) } }

  /// Nil if the address does not support the method.
  func route(for method: HTTPRequest.Method) -> APIRoute? {
    method == .options ? nil : routes.first { $0.method.allow(method) }
  }

  /// Nil if the path does not match the address.
  fileprivate func values(of path: [String]) -> [String]? {
    guard path.count == segments.count else { return nil }
    var values: [String] = []
    for (segment, text) in zip(segments, path) {
      switch segment {
      case .word(let word): guard text == word else { return nil }
      case .any: values.append(text)
      case .oneOf(let words):
        guard words.contains(text) else { return nil }
        values.append(text)
      }
    }
    return values
  }

  /// The words allowed as the last segment if all segments before match the path; none where any name is allowed.
  fileprivate func words(insteadOfLastIn path: [String]) -> [String] {
    guard path.count == segments.count, let last = segments.last, let text = path.last else { return [] }
    let words: [String] =
      switch last {
      case .word(let word): [word]
      case .any: []
      case .oneOf(let words): words
      }
    guard !words.contains(text), let word = words.first, values(of: path.dropLast() + [word]) != nil else { return [] }
    return words
  }
}
