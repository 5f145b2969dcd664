/// Who may watch a stream: its media, playlists, recordings, pages and state over HTTP.
package enum ViewersRule: String, Sendable, Hashable, CaseIterable {
  /// Every client.
  case open
  /// Clients with a token or key that allows `AccessAction.watch` on the stream, and administrators.
  case token
}
