internal import FMP4
internal import Publishing
internal import RecordingFiles

/// What recorders give, in order. It is taken on the thread that does the work, which may wait: nothing that follows happens
/// before the receiver returns.
enum RecordingOutput: Sendable {
  /// What is about to be seen on the disk.
  case prospect(RecordingProspect, RecordingFacts)
  case event(RecordingEvent)
  /// The newest state of the recording.
  case state(RecordingState)
  /// The media time at which the next file is due; nil while none is.
  case split(at: MediaTime?)
  /// Why not all is recorded at present, as a sentence; nil once all is.
  case waits(String?)
  /// An unlocked file whose movie is not made.
  case unfinished(UnfinishedRecording, Need)
  /// The recording has reached its limit of length or size, and the epoch of its stream goes on.
  case endedEarly(StreamName, epoch: String)

  /// What an unfinished file needs.
  enum Need: Sendable, Hashable {
    case copy
    /// Another attempt, because the disk prevented this one.
    case attempt
  }
}
