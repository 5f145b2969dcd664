internal import Basics
internal import Ingest

/// A recording as the catalogue knows it.
struct RecordingEntry: Sendable, Hashable {
  /// What became of it, as far as it can still be asked for; a recording that was cancelled is gone.
  enum State: String, Sendable, Hashable, CaseIterable {
    /// It is being written.
    case running
    /// A movie under its final name.
    case completed
    /// It ended before the stream did, for `reason`; what had been written is kept.
    case failed
  }

  var stream: StreamName
  var name: RecordingName
  var state: State
  /// Nanoseconds since 1970, of its first picture or audio.
  var startedAt: Int64
  /// Of media.
  var seconds: Double
  /// Of the file.
  var bytes: Int
  /// RFC 6381, of each track.
  var codecs: [String] = []
  var gaps: [RecordingGap] = []
  /// Why it failed.
  var reason: String?
  /// A run that was killed left it unfinished, and a later one finished it.
  var isSalvaged = false
  /// Neither people nor retention delete it.
  var isProtected = false
  /// Nanoseconds since 1970; nil unless it has been deleted and can still be restored.
  var deletedAt: Int64?
  /// There is a movie under its final name.
  var isPlayable = true
  /// The file's time of change, in nanoseconds since 1970: with its length, what tells that it is another file.
  var modifiedAt: Int64 = 0
  /// How much of it has been copied to make a movie of it, 0 to 1; nil where it is not being finished. Not kept in the
  /// catalogue.
  var finishing: Double?

  /// What its file says of it. The file's name tells its start to the second; a name that tells another one was given
  /// by somebody who knows better.
  mutating func take(_ metadata: RecordingMetadata) {
    (gaps, isSalvaged, reason) = (metadata.gaps, metadata.isSalvaged, metadata.failure)
    if reason != nil { state = .failed }
    let named = name.startNanoseconds ?? metadata.startedAt
    if (metadata.startedAt &- named).magnitude < Self.precisionOfNames { startedAt = metadata.startedAt }
  }

  /// In nanoseconds: names are cut off at the second, and what salvage reads is a few pictures off.
  private static let precisionOfNames: UInt64 = 2_000_000_000

  var file: String { name.finished }

  /// Where its file lies below the folder of recordings.
  var place: String {
    let folder = deletedAt == nil ? "\(stream)" : "\(stream)/\(RecordingFolder.deletedName)"
    return "\(folder)/\(isPlayable ? name.finished : name.unfinished)"
  }

  var key: RecordingKey { RecordingKey(stream: stream, name: name) }
}

/// Which recording.
struct RecordingKey: Sendable, Hashable, CustomStringConvertible {
  var stream: StreamName
  var name: RecordingName

  var description: String { "\(stream)/\(name.finished)" }
}
