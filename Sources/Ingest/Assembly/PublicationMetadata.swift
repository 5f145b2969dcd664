/// What a publisher says of its media before they come. Nothing of it is trusted: it is a hint for waits, for the frame grid
/// and for the log.
struct PublicationMetadata: Sendable, Equatable {
  /// Nil when it does not say.
  var framesPerSecond: Double?
  var hasVideo = false
  var hasAudio = false
  /// Name and version of the encoder; printable.
  var encoder = ""
}
