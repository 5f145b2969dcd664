internal import Basics
internal import Ingest

/// What happens to one recording, in order. The catalogue, the log and the API follow recordings by these.
struct RecordingEvent: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    /// The file exists and holds its first fragment.
    case started
    /// More has been written; told at most once a second.
    case progressed
    /// Nothing more is recorded to this file; `.stored` follows as soon as it is that, or `.failed`.
    case stopped(RecordingStop)
    /// An ordinary movie under its final name, which a power failure cannot take any more.
    case stored
    /// Recording stopped before it was asked to, and `facts` say why; or all of it was written and the disk did not let
    /// it be finished. What `facts` tell of is kept. Where a movie could be made of it at once, `.stored` has been told
    /// before; where that takes a copy, or another try, it comes later.
    case failed(reason: String)
    /// Nobody wanted it: the file is gone.
    case cancelled
    /// An earlier run left it unfinished; now it is stored.
    case salvaged
    /// Its file was removed: by retention, or because the time to take a deletion back is over.
    case deleted(reason: String)
  }

  var kind: Kind
  var facts: RecordingFacts
}

/// What is known of a recording.
struct RecordingFacts: Sendable, Hashable {
  var stream: StreamName
  var name: RecordingName
  /// Nanoseconds since 1970, of its first picture or audio.
  var startedAt: Int64
  /// Of media.
  var seconds: Double
  var bytes: UInt64
  /// RFC 6381, one a track.
  var codecs: [String]
  /// Where media is missing, in order.
  var gaps: [RecordingGap]
  /// Why it ended before it was to; nil where all of it is there.
  var failure: String?
  var disclosure = RecordingVisibility.whileWritten
}

/// From when on a recording is listed and can be watched.
enum RecordingVisibility: Sendable, Hashable {
  /// From its first fragment on.
  case whileWritten
  /// It may hold what was never on air: before it is stored, nobody is told of it and none of it is served.
  case onceStored
}

/// Media that a recording lacks, and why.
struct RecordingGap: Sendable, Hashable {
  /// Seconds of the recording after which it is missing.
  var at: Double
  /// Wall-clock seconds that are missing.
  var seconds: Double
  /// `nothing came from the publisher`, `the disk was too slow` …
  var reason: String
}

/// Hears of every event, on whatever thread of the recordings' pools it happens, one recording's events in order. It
/// hands slow work to a thread of its own.
protocol RecordingObserver: AnyObject, Sendable {
  func receive(_ event: RecordingEvent)
}
