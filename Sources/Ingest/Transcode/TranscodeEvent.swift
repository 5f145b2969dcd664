package import FMP4

/// What becomes of a picture's rungs, in order for each rung; or of audio, whose only rung is 0.
package enum TranscodeEvent: Sendable {
  /// What the pictures of a rung that follow are. The rung is the number in the ladder, from 0.
  case track(rung: Int, TrackDescription)
  /// The next picture of a rung in the order in which they are shown; its decode time is its presentation time, in ticks
  /// of its track.
  case picture(rung: Int, Sample)
  /// Of what is shown before this time no picture of any rung comes any more.
  case lost(before: MediaTime)
  /// Nothing follows.
  case ended
}

/// How transcoding of a stream is going.
package struct TranscodeStatus: Sendable, Hashable {
  package enum Worker: String, Sendable, Hashable {
    /// Nothing to do: no picture, or none that has a rung below it.
    case idle
    case running
    /// It was lost and is going to be started again.
    case waiting
  }

  package var worker = Worker.idle
  /// The worker's process, while it runs.
  package var processID: Int32?
  /// How often a worker was lost.
  package var restarts = 0
  /// Pictures that were left out because the machine was too slow, or no worker was there.
  package var droppedPictures = 0
  /// The rungs that are being made, by name.
  package var rungs: [String] = []
}
