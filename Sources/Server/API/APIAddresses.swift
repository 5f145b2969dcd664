/// All addresses of the API and what may be asked of each, in one list: what `/api/v1` lists, 404, 405 and Allow follow from
/// it. The routes say what is answered.
struct APIAddress: Sendable {
  /// `{stream}` stands for any segment, `start|stop` for one of its words.
  let pattern: String
  let methods: AllowedMethods
  /// What is asked for stands in the request's body.
  let takesBody: Bool

  private let segments: [Segment]

  private enum Segment: Sendable {
    case any
    case oneOf([String])

    func matches(_ text: String) -> Bool {
      switch self {
      case .any: true
      case .oneOf(let words): words.contains(text)
      }
    }
  }

  init(_ pattern: String, _ methods: AllowedMethods, takesBody: Bool = false) {
    self.pattern = pattern
    self.methods = methods
    self.takesBody = takesBody
    segments = pattern.split(separator: "/").map { segment in
      segment.hasPrefix("{") ? .any : .oneOf(segment.split(separator: "|").map(String.init))
    }
  }

  static let all = [
    APIAddress("/api/v1", .get),
    APIAddress("/api/v1/admin", .get),
    APIAddress("/api/v1/devices", .get),
    APIAddress("/api/v1/recordings", .get),
    APIAddress("/api/v1/recordings/{stream}/{file}", [.get, .delete]),
    APIAddress("/api/v1/recordings/{stream}/{file}/clip|keyframes", .get),
    APIAddress("/api/v1/recordings/{stream}/{file}/restore|protect|unprotect", .post),
    APIAddress("/api/v1/refusals", .get),
    APIAddress("/api/v1/sources", .get),
    APIAddress("/api/v1/sources/{source}", .get),
    APIAddress("/api/v1/sources/{source}/preview.jpg", .get),
    APIAddress("/api/v1/sources/{source}/start|preview|stop", .post),
    APIAddress("/api/v1/sources/{source}/recording/start|stop|cancel", .post),
    APIAddress("/api/v1/storage", .get),
    APIAddress("/api/v1/streams", .get),
    APIAddress("/api/v1/streams/{stream}", .get),
    APIAddress("/api/v1/streams/{stream}/capture/camera|microphone|controls|keyframe", .post, takesBody: true),
    APIAddress("/api/v1/streams/{stream}/recording/start|stop|cancel", .post),
  ]

  /// The address that a path is; nil for none.
  static func find(_ path: [String]) -> APIAddress? {
    all.first { $0.segments.count == path.count && zip($0.segments, path).allSatisfy { $0.matches($1) } }
  }

  /// What might have been meant by a path that is no address: one whose last segment is another word.
  static func unknown(_ path: [String]) -> Problem {
    let near = all.filter { address in
      address.segments.count == path.count && zip(address.segments, path).dropLast().allSatisfy { $0.matches($1) }
    }
    let words = near.flatMap { address -> [String] in
      if case .oneOf(let words)? = address.segments.last, path.count > 3 { words } else { [] }
    }
    let help = words.isEmpty ? "See /api/v1." : "Use one of \(words.joined(separator: ", "))."
    return .notFound("The API has no such address.", help: help)
  }

  static var index: JSON {
    [
      "version": .string(Version.number),
      "addresses": .array(
        all.map { ["path": .string($0.pattern), "methods": .string($0.methods.description)] }),
    ]
  }
}
