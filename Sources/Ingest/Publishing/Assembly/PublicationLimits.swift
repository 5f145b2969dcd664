/// Limits of one publication, for all protocols. In the first two seconds it buffers its media, up to `heldBytes`;
/// later nothing but units behind one whose time may be wrong.
package enum PublicationLimits {
  /// Most tracks of one publication, video and audio together.
  package static let tracks = 16
  /// Wait for an announced track, in milliseconds of media or of the clock.
  package static let announcedTrackWait: Int64 = 2000
  /// Wait for a second kind of track that was not announced. Same unit.
  static let unannouncedTrackWait: Int64 = 500
  /// Limits of the samples buffered meanwhile.
  package static let heldSamples = 4096
  package static let heldBytes = 16 << 20
  /// Bytes by which what a protocol holds has changed before its sink is told. Usual frames are smaller, so they cost nothing.
  package static let heldStep = 64 << 10
  /// Limits of the units that wait because one of them may have a wrong time (`TimestampJudge`), and nanoseconds of the wait.
  package static let doubtfulUnits = 1024
  package static let doubtfulBytes = 4 << 20
  static let doubtWait: Int64 = 1_500_000_000
  /// Frames of audio in one message: an encoder puts one or a few into it.
  package static let audioFrames = 64
  /// Nanoseconds of other media without a video, after which a break of the timeline is told without it: segments begin without
  /// it then (a usual one and `CutPolicy.leaderPatience`).
  static let leaderPatience: Int64 = 3_000_000_000
  /// Nanoseconds of media behind a break of the timeline without a key frame, after which its time of day is told without the break.
  static let breakPatience: Int64 = 30_000_000_000
  /// Parameter sets that are kept until they make a configuration.
  package static let parameterSets = 64
  /// Cues that wait for the start.
  static let heldCues = 16
  /// Longest distance between decoding and presentation of a frame, in nanoseconds. No encoder reorders by more.
  static let longestComposition: UInt64 = 10_000_000_000
}
