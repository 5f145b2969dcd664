package import FMP4

/// Output of a transcoder, in order for each rung. Audio has only rung 0.
package enum TranscodeEvent: Sendable {
  /// Track description of the rung's frames that follow. `rung` is the index in the ladder, from 0.
  case track(rung: Int, TrackDescription)
  /// The next frame of a rung in presentation order. Its decode time equals its presentation time, in ticks of its
  /// track.
  case frame(rung: Int, Sample)
  /// No frame of any rung with an earlier presentation time follows.
  case lost(before: MediaTime)
  /// The transcoder has ended.
  case ended
}

/// State of a stream's transcoding.
package struct TranscodeStatus: Sendable, Hashable {
  package enum Worker: String, Sendable, Hashable {
    /// Nothing to do: no video, no rung that is smaller than the video, or no publisher for a while.
    case idle
    case running
    /// It was lost and will be started again.
    case waiting
  }

  package var worker = Worker.idle
  /// Process identifier of the worker while it runs.
  package var processID: Int32?
  /// How often a worker was lost.
  package var restarts = 0
  /// Frames dropped because the machine was too slow or no worker was running.
  package var droppedFrames = 0
  /// Names of the rungs that are being made.
  package var rungs: [String] = []
}
