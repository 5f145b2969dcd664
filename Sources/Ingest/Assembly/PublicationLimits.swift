/// The bounds on one publication, whatever protocol it comes by. For the first two seconds it holds what has come, up to
/// `heldBytes`; after that nothing.
enum PublicationLimits {
  /// Tracks that one publication may have.
  static let tracks = 32
  /// Wait for a track that was announced, in milliseconds of media or of the clock.
  static let announcedTrackWait: Int64 = 2000
  /// Wait for a second kind of track that nobody announced, likewise.
  static let unannouncedTrackWait: Int64 = 500
  /// Samples held meanwhile.
  static let heldSamples = 4096
  static let heldBytes = 16 << 20
  /// How far the presentation of a picture may be from its decoding, in nanoseconds: more than any encoder's reordering.
  static let longestComposition: UInt64 = 10_000_000_000
}
