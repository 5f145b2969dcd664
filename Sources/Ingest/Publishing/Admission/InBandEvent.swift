package import FMP4

/// What a publication carries beside its samples, on the timeline of its events.
package enum InBandEvent: Sendable {
  case cue(StreamCue)
  /// All services of closed captions that were found in a video track so far.
  case captions(TrackID, CaptionServices)
  /// The newest account of the transport stream, about each second.
  case content(TransportContent)
  /// How far apart the encoder says that its key frames are. Comes before the first tracks.
  case keyFrameDistance(MediaTime)
  /// The timestamp of a frame was wrong, and the frame has the time at which it was expected.
  case mendedTime(MediaKind)
  /// A frame is left out because it came too early: before the first key frame, or as audio that overlaps the frames before it.
  /// Nothing is missing by that.
  case early(MediaKind)
  /// Audio and its timestamps were apart: a gap, or frames that were dropped.
  case correctedAudio
}
