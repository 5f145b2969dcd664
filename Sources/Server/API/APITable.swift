internal import Answers
internal import Base
internal import Delivery
internal import HTTP
internal import Publishing

/// All routes of the API in one list. From it follow the list at `/api/v1`, 404, 405, Allow, the check of the admin token, and
/// docs/http.md.
package enum APITable {
  /// By address: routes of one address stand together.
  static let routes = (general + control + recordings + sources + streams)
    .sorted { ($0.pattern, $0.method.rawValue) < ($1.pattern, $1.method.rawValue) }

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
  static func admit(
    _ request: HTTPRequest, _ gate: AdminGate, _ moment: AdminGate.Moment = .beforeAnswer
  ) -> Result<(route: APIRoute, values: [String]), Refusal> {
    guard let (address, values) = find(request.path) else { return .failure(Refusal(problem: unknown(request.path))) }
    guard let route = address.route(for: request.method) else {
      return .failure(Refusal(problem: .methodNotAllowed(allow: address.methods.description)))
    }
    if let scope = route.access.scope {
      let recording = route.access == .record ? values.first.flatMap { StreamName($0) } : nil
      if let refusal = gate.refusal(of: request, needing: scope, orRecording: recording, moment) {
        return .failure(Refusal(problem: refusal))
      }
    }
    return .success((route, values))
  }

  /// The address that a path matches, and its values; nil if it matches none.
  package static func find(_ path: [String]) -> (address: APIAddress, values: [String])? {
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
    return Problem(.noSuchAddress, "The API has no such address.", help: help)
  }

  static var index: IndexAnswer {
    IndexAnswer(
      version: Version.number,
      addresses: addresses.map { IndexAnswer.Address(path: $0.pattern, methods: $0.methods.description) })
  }
}

/// `/api/v1`.
struct IndexAnswer: APIObject {
  let version: String
  let addresses: [Address]

  struct Address: APIObject {
    let path: String
    let methods: String
  }

  static let notes: [String: FieldNote] = ["addresses": "All addresses of the API; `|` separates words to choose from."]
}
