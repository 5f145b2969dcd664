internal import HTTP

/// The routes of one address.
package struct APIAddress: Sendable {
  let pattern: String
  var routes: [APIRoute]
  private let segments: [Segment]

  private enum Segment: Sendable {
    case word(String)
    case any
    case oneOf([String])
  }

  init(_ route: APIRoute) {
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
  func values(of path: [String]) -> [String]? {
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
  func words(insteadOfLastIn path: [String]) -> [String] {
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
