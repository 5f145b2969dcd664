package import FMP4
package import Publishing

/// A recording in the catalogue.
package struct RecordingEntry: Sendable, Hashable {
  /// State of a recording. Cancelled recordings have no entry.
  package enum State: String, Sendable, Hashable, CaseIterable {
    /// It is being written.
    case running
    /// A movie under its final name.
    case completed
    /// It ended before the stream, for `reason`; what was written is kept.
    case failed
  }

  package var stream: StreamName
  package var name: RecordingName
  package var state: State
  /// Wall-clock time of its first video or audio.
  package var startedAt: WallTime
  /// Seconds of media.
  package var seconds: Double
  /// Bytes of the file.
  package var bytes: Int
  /// RFC 6381, one for each track.
  package var codecs: [String] = []
  package var gaps: [RecordingGap] = []
  /// Why it failed.
  package var reason: String?
  /// The name that a client gave to it when it began: its file has it.
  var title: String?
  package var annotation = RecordingAnnotation()
  /// A killed run left it unfinished, and a later run finished it.
  package var isSalvaged = false
  /// Neither requests nor retention delete it.
  package var isProtected = false
  /// Nil unless it was deleted and can still be restored.
  package var deletedAt: WallTime?
  /// A movie exists under its final name.
  package var isPlayable = true
  /// Modification time of the file. With the length it shows whether the file has changed.
  var modifiedAt = WallTime.zero
  /// Share of the copy that makes a movie of it, 0 to 1; nil if it is not being finished. Not stored in the catalogue.
  package var finishing: Double?

  /// Takes over the metadata of its file. The file's name contains the start to the second. If the name has a different start, it
  /// was renamed on purpose and that start is used.
  mutating func take(_ metadata: RecordingMetadata) {
    (gaps, isSalvaged, reason, title) = (metadata.gaps, metadata.isSalvaged, metadata.failure, metadata.title)
    if reason != nil { state = .failed }
    let named = name.startTime ?? metadata.startedAt
    if (metadata.startedAt &- named).magnitude < Self.precisionOfNames { startedAt = metadata.startedAt }
  }

  /// In nanoseconds. Names are truncated to seconds, and the start found by salvage is a few frames off.
  private static let precisionOfNames: UInt64 = 2_000_000_000

  var facts: RecordingFacts {
    RecordingFacts(
      stream: stream, name: name, startedAt: startedAt, seconds: seconds, bytes: UInt64(clamping: bytes),
      codecs: codecs,
      gaps: gaps)
  }

  /// The name that people see.
  package var shownTitle: String? { annotation.title ?? title }

  package var file: String { name.finished }

  /// Path of its file below the recordings folder.
  var place: String {
    let folder = deletedAt == nil ? "\(stream)" : "\(stream)/\(RecordingFolder.deletedName)"
    return "\(folder)/\(isPlayable ? name.finished : name.unfinished)"
  }

  package var key: RecordingKey { RecordingKey(stream: stream, name: name) }
}

/// Identifies a recording.
package struct RecordingKey: Sendable, Hashable, CustomStringConvertible {
  package var stream: StreamName
  package var name: RecordingName

  package init(stream: StreamName, name: RecordingName) {
    (self.stream, self.name) = (stream, name)
  }

  package var description: String { "\(stream)/\(name.finished)" }
}
