/// Why a recording, or a file of it, came to its end as it should.
enum RecordingStop: Sendable, Hashable, CustomStringConvertible {
  /// Somebody did so over the API or on a page.
  case asked
  case streamEnded
  /// The server goes down.
  case shutdown
  /// It is as long as it may be.
  case longest
  /// It is as large as it may be.
  case largest
  /// It goes on in another file, by time.
  case split
  /// It goes on in another file: one cannot hold what comes now.
  case anotherFormat
  /// It goes on in another file: for too long nothing came.
  case hole

  /// A server that goes down leaves copies to the next start.
  var effort: RecordingFile.Effort {
    switch self {
    case .shutdown: .atOnce
    case .asked, .streamEnded, .longest, .largest, .split, .anotherFormat, .hole: .whatItTakes
    }
  }

  var description: String {
    switch self {
    case .asked: "somebody stopped it"
    case .streamEnded: "the stream ended"
    case .shutdown: "weir was stopped"
    case .longest: "it is as long as --record-max-duration lets it be"
    case .largest: "it is as large as --record-max-size lets it be"
    case .split: "another file begins, by --record-split"
    case .anotherFormat: "another file begins: one cannot hold what comes now (another codec, or turned pictures)"
    case .hole: "another file begins after a hole in the media"
    }
  }
}
