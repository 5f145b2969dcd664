internal import FMP4

/// A publisher's metadata, sent before its media. Not trusted: used only as a hint for waits, for the frame grid and
/// for the log.
struct PublicationMetadata: Sendable, Equatable {
  /// Nil if not stated.
  var framesPerSecond: Double?
  var hasVideo = false
  var hasAudio = false
  /// It ended too early: what it does not name may be there.
  var isCut = false
  /// Name and version of the encoder, printable.
  var encoder = ""
  /// How far apart the encoder says that key frames are; nil if not stated.
  var keyFrameDistance: MediaTime?
  /// Tracks that it names by their numbers.
  var tracks: [TrackID: TrackStatement] = [:]
}
