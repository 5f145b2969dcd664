/// Why a recording, or one of its files, ended without a failure.
package enum RecordingStop: Sendable, Hashable, CustomStringConvertible {
  /// A client stopped it over the API or on a page.
  case asked
  case streamEnded
  /// The server is shutting down.
  case shutdown
  /// The limit of length is reached.
  case longest
  /// The limit of size is reached.
  case largest
  /// It goes on in another file, by time.
  case split
  /// It goes on in another file, since one file cannot hold the new format.
  case anotherFormat
  /// It goes on in another file after a long hole in the media, or in a very long pause of one of its tracks.
  case hole

  /// During shutdown, copies are left to the next start.
  package var effort: RecordingFile.Effort {
    switch self {
    case .shutdown: .atOnce
    case .asked, .streamEnded, .longest, .largest, .split, .anotherFormat, .hole: .whatItTakes
    }
  }

  package var description: String {
    switch self {
    case .asked: "a client stopped it"
    case .streamEnded: "the stream ended"
    case .shutdown: "weir was stopped"
    case .longest: "it has reached --record-max-duration, or the limit of its request"
    case .largest: "it has reached --record-max-size, or the limit of its request"
    case .split: "another file begins, by --record-split"
    case .anotherFormat: "another file begins: one cannot hold the new format (another codec, or rotated video)"
    case .hole: "another file begins after a hole in the media, or in a long pause of a track"
    }
  }
}
