/// How long anybody may keep a response: every `Cache-Control` that weir sends is in this file.
package enum CachePolicy: Sendable {
  /// Media and init segments below an epoch, scripts and styles below a build: the URL never means other bytes.
  case immutable
  /// Live media playlists, multivariant playlists and MPDs: they change with every segment. A second is at most half
  /// of any target duration that weir announces.
  case livePlaylist
  /// The answer to a request that named a position in a playlist (`_HLS_msn`): whoever names it again is served well by
  /// the same bytes for six target durations (RFC 8216bis Appendix B.2).
  case awaitedPlaylist(seconds: Int)
  /// Playlists of a stream that has ended, for as long as they stay available.
  case endedPlaylist
  /// Whatever is not there (yet): a future segment's 404 must not outlive a second.
  case missing
  /// `/time`, the API, health, errors, `stream.mp4`: never the same twice.
  case never
  /// Pages: asked for again each time, answered with 304 while nothing changed.
  case page
  /// Finished recordings: kept by the viewer alone, asked for again, since they can be deleted.
  case recording

  /// The field's value.
  package var value: String {
    switch self {
    case .immutable: "public, max-age=31536000, immutable"
    case .livePlaylist: "public, max-age=1"
    case .awaitedPlaylist(let seconds): "public, max-age=\(seconds)"
    case .endedPlaylist: "public, max-age=10"
    case .missing: "public, max-age=1"
    case .never: "no-store"
    case .page: "no-cache"
    case .recording: "private, no-cache"
    }
  }
}
