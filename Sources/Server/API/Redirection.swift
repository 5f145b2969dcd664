internal import HTTP
internal import Ingest

/// Where people are sent who type nearly the right address.
struct Redirection {
  let address: String
  let kind: HTTPResponse.Redirect

  /// Nil where there is nothing to send anybody to. Below `/live` only people are sent anywhere: players need playlists.
  static func place(of request: HTTPRequest) -> Redirection? {
    let path = request.path
    let hasSlash = request.target.endsWithSlash
    switch path.first {
    case "recordings" where path.count == 1 && hasSlash: return same("/recordings", request)
    case "watch" where path.count == 1: return Redirection(address: "/", kind: .temporary)
    case "watch" where path.count == 2 && hasSlash: return StreamName(path[1]).flatMap { same("/watch/\($0)", request) }
    case "live" where path.count == 1 && request.wantsPage: return Redirection(address: "/", kind: .temporary)
    case "live" where path.count == 2 && request.wantsPage:
      return StreamName(path[1]).map { Redirection(address: "/watch/\($0)", kind: .temporary) }
    default: return nil
    }
  }

  /// With the query, where that is nothing but plain letters and signs: it goes into a field of the response's head.
  private static func same(_ address: String, _ request: HTTPRequest) -> Redirection {
    let query = request.target.rawQuery
    let isPlain = !query.isEmpty && query.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    return Redirection(address: isPlain ? "\(address)?\(query)" : address, kind: .permanent)
  }
}

extension HTTPRequest {
  /// A browser asks for what stands in its address bar, and says so; players, scripts and tools do not.
  var wantsPage: Bool { headers("Accept").contains { $0.lowercased().contains("text/html") } }
}
