/// How long a response may be cached. All `Cache-Control` values of weir are in this file.
package enum CachePolicy: Sendable {
  /// Media and init segments of an epoch, scripts and styles of a build: the bytes of the URL never change.
  case immutable
  /// Live media playlists, multivariant playlists and MPDs: they change with each segment. A second is at most half of any
  /// target duration.
  case livePlaylist
  /// The response to a blocking reload (`_HLS_msn`). It stays valid for the same request for six target durations
  /// (RFC 8216bis Appendix B.2).
  case awaitedPlaylist(seconds: Int)
  /// The state of a stream, which each open player asks for again. A cache may give the last one while it asks for the next
  /// (RFC 5861 §3).
  case state
  /// Playlists of an ended stream, while they stay available.
  case endedPlaylist
  /// Items that do not exist (yet): the 404 of a future segment must be cached for a second at most.
  case missing
  /// `/time`, the API, health, errors, `stream.mp4`: never cached.
  case never
  /// Pages: requested again each time; 304 when unchanged.
  case page
  /// Finished recordings: cached by the client only, and requested again, since they can be deleted.
  case recording
  /// What `/api/v1/authorize` says.
  case verdict(seconds: Int64)

  /// The value of the field.
  package var value: String {
    switch self {
    case .immutable: "public, max-age=31536000, immutable"
    case .livePlaylist: "public, max-age=1"
    case .state: "public, max-age=1, stale-while-revalidate=2"
    case .awaitedPlaylist(let seconds): "public, max-age=\(seconds)"
    case .endedPlaylist: "public, max-age=10"
    case .missing: "public, max-age=1"
    case .never: "no-store"
    case .page: "no-cache"
    case .recording: "private, no-cache"
    case .verdict(let seconds): "max-age=\(seconds)"
    }
  }
}
