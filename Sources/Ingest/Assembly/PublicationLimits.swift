/// Limits of one publication, for all protocols. In the first two seconds it buffers its media, up to `heldBytes`;
/// later nothing.
enum PublicationLimits {
  /// Most tracks of one publication, video and audio together.
  static let tracks = 16
  /// Wait for an announced track, in milliseconds of media or of the clock.
  static let announcedTrackWait: Int64 = 2000
  /// Wait for a second kind of track that was not announced. Same unit.
  static let unannouncedTrackWait: Int64 = 500
  /// Limits of the samples buffered meanwhile.
  static let heldSamples = 4096
  static let heldBytes = 16 << 20
  /// Bytes by which what a protocol holds has changed before its sink is told. Usual frames are smaller, so they cost nothing.
  static let heldStep = 64 << 10
  /// Cues that wait for the start.
  static let heldCues = 16
  /// Longest distance between decoding and presentation of a frame, in nanoseconds. No encoder reorders by more.
  static let longestComposition: UInt64 = 10_000_000_000
}
