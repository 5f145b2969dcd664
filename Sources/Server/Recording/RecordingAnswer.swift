/// What became of the wish to start, stop or cancel a recording.
enum RecordingAnswer: Sendable, Hashable {
  case done
  case refused(RecordingRefusal)
}

/// Why a recording is not started, stopped or cancelled. Reads as a sentence.
enum RecordingRefusal: Sendable, Hashable, CustomStringConvertible {
  /// No stream of that name is being published.
  case notLive
  case alreadyRecording
  case notRecording
  /// A stream of weir's own making: it is for trying out, and never recorded.
  case neverRecorded
  /// A source of weir's own that is stopped.
  case notCaptured

  var description: String {
    switch self {
    case .notLive: "There is no live stream of that name; publish it first."
    case .alreadyRecording: "The stream is being recorded already; stop that recording first."
    case .notRecording: "The stream is not being recorded."
    case .notCaptured: "The source is stopped; start it, or its preview, first."
    case .neverRecorded: "This stream is a source of weir's own, which is never recorded."
    }
  }
}
