internal import FMP4
internal import Publishing

/// An event of one recording. The catalogue, the log and the API follow recordings by these, in order.
struct RecordingEvent: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    /// The file exists and holds its first fragment.
    case started
    /// More has been written; sent at most once a second.
    case progressed
    /// Nothing more is recorded to this file. `.stored` or `.failed` follows.
    case stopped(RecordingStop)
    /// An ordinary movie under its final name, safe from a power failure.
    case stored
    /// Recording stopped early, for the reason in `facts`; or everything was written and the disk prevented finishing. The media
    /// that `facts` describe is kept. If a movie could be made of it at once, `.stored` came before. If that needs a copy or
    /// another attempt, `.stored` comes later.
    case failed(reason: String)
    /// A client cancelled the recording: the file is removed.
    case cancelled
    /// A file that an earlier run left unfinished has been stored.
    case salvaged
    /// Its file was removed: by retention, or because the time to undo a deletion is over.
    case deleted(reason: String)
  }

  var kind: Kind
  var facts: RecordingFacts
}

/// The known facts of a recording.
struct RecordingFacts: Sendable, Hashable {
  var stream: StreamName
  var name: RecordingName
  /// Wall-clock time of its first video or audio.
  var startedAt: WallTime
  /// Seconds of media.
  var seconds: Double
  var bytes: UInt64
  /// RFC 6381, one for each track.
  var codecs: [String]
  /// Places where media is missing, in order.
  var gaps: [RecordingGap]
  /// Why it ended early; nil where nothing is missing at the end.
  var failure: String?
  /// The name that a client gave to it.
  var title: String?
  /// Closed captions that its playlists declare, as `CaptionDeclarations` writes them; nil for none.
  var captions: String?
  var visibility = RecordingVisibility.whileWritten
}

/// From when on a recording is listed and can be watched.
enum RecordingVisibility: Sendable, Hashable {
  /// From its first fragment on.
  case whileWritten
  /// When it is stored. It may hold media that was never on air, so before that it is neither listed nor served.
  case onceStored
}

/// Media missing from a recording, and why.
package struct RecordingGap: Sendable, Hashable {
  /// Seconds of the recording before the gap.
  package var at: Double
  /// Length of the gap, in wall-clock seconds.
  package var seconds: Double
  /// `nothing came from the publisher`, `the disk was too slow` …
  package var reason: String
}

/// Receives all recording events, those of one recording in order, on any thread of the recording pools. It must hand slow work
/// to a thread of its own.
protocol RecordingObserver: AnyObject, Sendable {
  func receive(_ event: RecordingEvent)
}
