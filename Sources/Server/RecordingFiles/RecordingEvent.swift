package import FMP4
package import Publishing

/// An event of one recording. The catalogue, the log and the API follow recordings by these, in order.
package struct RecordingEvent: Sendable, Hashable {
  package enum Kind: Sendable, Hashable {
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

  package var kind: Kind
  package var facts: RecordingFacts

  package init(kind: Kind, facts: RecordingFacts) {
    (self.kind, self.facts) = (kind, facts)
  }
}

/// The known facts of a recording.
package struct RecordingFacts: Sendable, Hashable {
  package var stream: StreamName
  package var name: RecordingName
  /// Wall-clock time of its first video or audio.
  package var startedAt: WallTime
  /// Seconds of media.
  package var seconds: Double
  package var bytes: UInt64
  /// RFC 6381, one for each track.
  package var codecs: [String]
  /// Places where media is missing, in order.
  package var gaps: [RecordingGap]
  /// Why it ended early; nil where nothing is missing at the end.
  package var failure: String?
  /// The name that a client gave to it.
  var title: String?
  /// Closed captions that its playlists declare, as `CaptionDeclarations` writes them; nil for none.
  var captions: String?
  package var visibility: RecordingVisibility

  package init(
    stream: StreamName, name: RecordingName, startedAt: WallTime, seconds: Double, bytes: UInt64, codecs: [String],
    gaps: [RecordingGap], failure: String? = nil, title: String? = nil, captions: String? = nil,
    visibility: RecordingVisibility = .whileWritten
  ) {
    (self.stream, self.name, self.startedAt, self.seconds, self.bytes) = (stream, name, startedAt, seconds, bytes)
    (self.codecs, self.gaps, self.failure, self.title, self.captions) = (codecs, gaps, failure, title, captions)
    self.visibility = visibility
  }
}

/// From when on a recording is listed and can be watched.
package enum RecordingVisibility: Sendable, Hashable {
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

  package init(at: Double, seconds: Double, reason: String) {
    (self.at, self.seconds, self.reason) = (at, seconds, reason)
  }
}

/// Receives all recording events, those of one recording in order, on any thread of the recording pools. It must hand slow work
/// to a thread of its own.
package protocol RecordingObserver: AnyObject, Sendable {
  func receive(_ event: RecordingEvent)
}
