/// What an audio track is for (ISO/IEC 13818-1 §2.6.19, audio_type).
package enum TrackRole: String, Sendable, Hashable {
  case main
  /// For viewers who are hard of hearing.
  case hearingImpaired
  /// Describes the video for viewers who see little.
  case description
}
