internal import HTTP
internal import Publishing

/// Redirects browsers from addresses that are nearly right.
struct Redirection {
  let address: String
  let kind: HTTPResponse.Redirect

  /// Nil if there is no redirection. Below `/live` only browsers are redirected, since players need playlists.
  static func place(of request: HTTPRequest) -> Redirection? {
    let path = request.path
    let hasSlash = request.target.endsWithSlash
    switch path.first {
    case "recordings" where path.count == 1 && hasSlash: return same("/recordings", request)
    case "publish" where path.count == 1 && hasSlash: return same("/publish", request)
    case "publish" where path.count == 2 && hasSlash:
      return StreamName(path[1]).flatMap { same("/publish/\($0)", request) }
    case "watch" where path.count == 1: return Redirection(address: "/", kind: .temporary)
    case "watch" where path.count == 2 && hasSlash: return StreamName(path[1]).flatMap { same("/watch/\($0)", request) }
    case "embed" where path.count == 2 && hasSlash: return StreamName(path[1]).flatMap { same("/embed/\($0)", request) }
    case "live" where path.count == 1 && request.wantsPage: return Redirection(address: "/", kind: .temporary)
    case "live" where path.count == 2 && request.wantsPage:
      return StreamName(path[1]).map { Redirection(address: "/watch/\($0)", kind: .temporary) }
    default: return nil
    }
  }

  /// Keeps the query if it has only plain characters, because it becomes part of a header field.
  private static func same(_ address: String, _ request: HTTPRequest) -> Redirection {
    let query = request.target.rawQuery
    let isPlain = !query.isEmpty && query.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    return Redirection(address: isPlain ? "\(address)?\(query)" : address, kind: .permanent)
  }
}

extension HTTPRequest {
  /// A browser sends this for an address in its address bar; players, scripts and tools do not.
  var wantsPage: Bool { headers("Accept").contains { $0.lowercased().contains("text/html") } }
}
