internal import Delivery
internal import HTTP
internal import Publishing
internal import Streams

/// The addresses outside of the API, by their form alone, and the methods that each allows. From it follow 405, Allow, OPTIONS, and
/// the 404 of requests that would change something. Whether a stream or a file has that name is left to the routes.
enum PublicAddress {
  /// What a request may do at its address; nil if no address has this form.
  static func methods(of request: HTTPRequest) -> AllowedMethods? {
    let path = request.path
    // Programs do not follow redirections: only browsers are told of an address that is nearly right.
    if request.target.endsWithSlash, !takesSlash(path), Redirection.place(of: request) == nil { return nil }
    switch (path.first, path.count) {
    case (nil, _): return .get
    case ("time", 1), ("healthz", 1), ("readyz", 1), ("metrics", 1), ("favicon.ico", 1), ("publish", 1): return .get
    case ("web", 2...): return .get
    case ("watch", 1), ("live", 1), ("live", 2): return Redirection.place(of: request) == nil ? nil : .get
    case ("publish", 2), ("watch", 2), ("embed", 2): return StreamName(path[1]) == nil ? nil : .get
    case ("live", 3): return StreamName(path[1]) == nil ? nil : stable[path[2]]
    case ("live", 5):
      guard StreamName(path[1]) != nil, Rendition(pathSegment: path[3]) != nil else { return nil }
      return MediaName.parse(path[4]) == nil ? nil : .get
    case ("recordings", let count): return recordings(path, count)
    default: return nil
    }
  }

  /// Why a request is refused for its method; nil if its route answers. The 404 of a route says more than this one, so it answers
  /// what reads.
  static func refusal(of request: HTTPRequest) -> Problem? {
    if request.isRead, !IngestRoutes.isPlace(request.path) { return nil }
    guard let methods = methods(of: request) else { return .nothingHere }
    return methods.allow(request.method) ? nil : .methodNotAllowed(allow: methods.description)
  }

  /// Behind `/live/{stream}/`.
  private static let stable: [String: AllowedMethods] = [
    "index.m3u8": .get, "manifest.mpd": .get, "manifest.mpp": .get, "dvr.m3u8": .get, "stream.mp4": .get,
    "thumbnail.jpg": .get, "status.json": .get, "ingest": [.post, .put],
  ]

  private static func recordings(_ path: [String], _ count: Int) -> AllowedMethods? {
    if count == 1 { return .get }
    guard count > 2, StreamName(path[1]) != nil else { return nil }
    switch count {
    case 3: return .get
    case 4: return ["index.m3u8", "manifest.mpd"].contains(path[3]) ? .get : nil
    case 5: return Rendition(rawValue: path[3]) == nil || MediaName.parse(path[4]) == nil ? nil : .get
    default: return nil
    }
  }

  /// Addresses that are the same with a slash behind them.
  private static func takesSlash(_ path: [String]) -> Bool {
    path.count == 1 && ["time", "healthz", "readyz", "metrics"].contains(path.first)
      || IngestRoutes.isPlace(path)
  }
}
