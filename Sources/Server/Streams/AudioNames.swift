internal import FMP4

/// Names of the tracks of audio for viewers, as configured: of a track by its number, or of all tracks in a language.
struct AudioNames: Sendable, Hashable {
  var ofTracks: [Int: String] = [:]
  /// By ISO 639-2 code.
  var ofLanguages: [String: String] = [:]

  /// Nil: none is configured.
  subscript(_ track: TrackDescription) -> String? {
    guard track.kind == .audio else { return nil }
    return ofTracks[track.number] ?? ofLanguages[track.language]
  }
}
