/// What an audio track is for (ISO/IEC 13818-1 §2.6.19, audio_type).
public enum TrackRole: String, Sendable, Hashable {
  /// The programme's own sound.
  case main
  /// For viewers who are hard of hearing.
  case hearingImpaired
  /// Describes the video for viewers who see little.
  case description
}
