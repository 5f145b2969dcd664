package import FMP4

/// A publisher's metadata, sent before its media. Not trusted: used only as a hint for waits, for the frame grid and
/// for the log.
package struct PublicationMetadata: Sendable, Equatable {
  /// Nil if not stated.
  package var framesPerSecond: Double?
  package var hasVideo = false
  package var hasAudio = false
  /// It ended too early: what it does not name may be there.
  package var isCut = false
  /// Name and version of the encoder, printable.
  package var encoder = ""
  /// How far apart the encoder says that key frames are; nil if not stated.
  package var keyFrameDistance: MediaTime?
  /// Tracks that it names by their numbers.
  package var tracks: [TrackID: TrackStatement] = [:]

  package init(
    framesPerSecond: Double? = nil, hasVideo: Bool = false, hasAudio: Bool = false, isCut: Bool = false,
    encoder: String = "", keyFrameDistance: MediaTime? = nil, tracks: [TrackID: TrackStatement] = [:]
  ) {
    (self.framesPerSecond, self.hasVideo, self.hasAudio, self.isCut, self.encoder) = (
      framesPerSecond, hasVideo, hasAudio, isCut, encoder
    )
    (self.keyFrameDistance, self.tracks) = (keyFrameDistance, tracks)
  }
}
