internal import Streams

/// Result of a request to start, stop or cancel a recording.
package enum RecordingAnswer: Sendable, Hashable {
  case done
  case refused(RecordingRefusal)
}

/// Why a recording is not started, stopped or cancelled. Reads as a sentence.
package enum RecordingRefusal: Sendable, Hashable, CustomStringConvertible {
  /// No stream of that name is being published.
  case notLive
  case alreadyRecording
  case notRecording
  /// The test pattern, which is for trials and never recorded.
  case neverRecorded
  /// A local source whose devices are being closed.
  case isStopping
  /// It has not all of the tracks that are to be recorded.
  case noSuchTrack
  /// The disk has not taken what earlier recordings of the stream wrote.
  case isClosing

  package var description: String {
    switch self {
    case .notLive: "There is no live stream of that name; publish it first."
    case .alreadyRecording: "The stream is already being recorded; stop that recording first."
    case .notRecording: "The stream is not being recorded."
    case .noSuchTrack: "The stream does not have the chosen tracks at present."
    case .isStopping: "The source is being stopped; try again in a moment."
    case .isClosing:
      "\(ClosingSinks.limit) earlier recordings of the stream are still being written; try again when the disk has them."
    case .neverRecorded: "This stream is never recorded: it is the test pattern, or its record mode is never."
    }
  }
}
