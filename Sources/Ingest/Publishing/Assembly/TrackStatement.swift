package import FMP4

/// What a publisher states about one of its tracks, beside its media.
package struct TrackStatement: Sendable, Equatable {
  /// ISO 639-2 code of three letters. Nil if not stated.
  package var language: String?
  package var role = TrackRole.main

  package init(language: String? = nil, role: TrackRole = .main) {
    (self.language, self.role) = (language, role)
  }
}
