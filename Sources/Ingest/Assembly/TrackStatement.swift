internal import FMP4

/// What a publisher states about one of its tracks, beside its media.
struct TrackStatement: Sendable, Equatable {
  /// ISO 639-2 code of three letters. Nil if not stated.
  var language: String?
  var role = TrackRole.main
}
