package import FMP4

/// Names of the tracks of audio for viewers, as configured: of a track by its number, or of all tracks in a language.
package struct AudioNames: Sendable, Hashable {
  package var ofTracks: [Int: String] = [:]
  /// By ISO 639-2 code.
  package var ofLanguages: [String: String] = [:]

  package init() {}

  /// Nil: none is configured.
  package subscript(_ track: TrackDescription) -> String? {
    guard track.kind == .audio else { return nil }
    return ofTracks[track.number] ?? ofLanguages[track.language]
  }
}
